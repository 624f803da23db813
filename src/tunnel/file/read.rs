//! From YAML to what it says. Everything is read, whatever is wrong before it.

use super::fields::{Fields, Reader, is_placeholder};
use super::problem::{Clash, Fault, Lack, Named, Rule, nearest, shown};
use super::values::{self, Account};
use super::yaml::{Entry, Node, Placed, Position};
use super::{
    BastionEntry, End, ForwardEntry, Here, Host, KeyFile, Listen, ReadFile, ServerEntry, Surroundings, TunnelsFile,
    Via, WorkerEntry,
};
use crate::tunnel::plan::{AgentName, ForwardId};
use api::ServerUrl;
use ssh::{Compression, Identity, Tuning};
use std::path::PathBuf;

const DEFAULT_STATE_DIR: &str = "/var/lib/gpustack/tunnels";
const SYSTEM_KNOWN_HOSTS: &str = "/etc/ssh/ssh_known_hosts";
/// Room for `.health-here` behind it in an id.
const MAX_NAME_CHARS: usize = 80;
/// What [`AgentName`] takes.
const MAX_ID_CHARS: usize = 100;
/// What a server takes.
const MAX_WORKER_NAME_CHARS: usize = 128;

const FILE_KEYS: &[&str] = &[
    "id",
    "here",
    "state_dir",
    "token_file",
    "report",
    "server_url",
    "ssh",
    "server",
    "bastions",
    "workers",
    "forwards",
];
const SSH_KEYS: &[&str] =
    &["user", "identity", "certificate", "agent", "known_hosts", "keep_alive", "keep_alives_unanswered", "compression"];
const SERVER_KEYS: &[&str] = &["address", "ssh", "via", "local_port", "user", "identity", "certificate", "agent"];
const BASTION_KEYS: &[&str] = &["ssh", "via", "user", "identity", "certificate", "agent"];
const WORKER_KEYS: &[&str] = &[
    "name",
    "ssh",
    "via",
    "server_port",
    "health_check",
    "worker_port",
    "health_port",
    "user",
    "identity",
    "certificate",
    "agent",
];
const FORWARD_KEYS: &[&str] =
    &["local", "remote", "target", "ssh", "via", "workers", "user", "identity", "certificate", "agent"];

/// `ssh` of the whole file.
#[derive(Default)]
struct Defaults {
    user: Option<String>,
    credentials: Credentials,
}

/// With what to log in, as far as a table says it.
#[derive(Clone, Default)]
struct Credentials {
    keys: Option<Vec<KeyFile>>,
    is_agent_used: Option<bool>,
}

struct FileReader<'a> {
    reader: Reader,
    surroundings: &'a Surroundings,
    defaults: Defaults,
    key_files: Vec<KeyFile>,
    vias: Vec<Via>,
    /// The keys of `bastions` and `workers`, and `server`: what `ssh` of a forward may name.
    names: Vec<String>,
    here: Here,
    /// Where the whole file's `ssh` stands; the top when there is none.
    ssh_position: Position,
}

/// Everything that the file says.
pub fn file(root: &Node, surroundings: &Surroundings) -> ReadFile {
    let mut reader = Reader::default();
    let top = reader.table(root, ("", root.position), FILE_KEYS);
    let here = here(&mut reader, &top);
    let mut file = FileReader {
        reader,
        surroundings,
        defaults: Defaults::default(),
        key_files: Vec::new(),
        vias: Vec::new(),
        names: vec![Here::SERVER.to_owned()],
        here: here.value.clone(),
        ssh_position: top.position_of("ssh"),
    };
    let read = file.whole(&top, here);
    ReadFile { file: Some(read), problems: file.reader.problems }
}

impl Here {
    const BASTION: &'static str = "bastion";
    pub(super) const SERVER: &'static str = "server";
}

fn here(reader: &mut Reader, top: &Fields<'_>) -> Placed<Here> {
    let Some(text) = reader.text(top, "here") else { return Placed { value: Here::Bastion, position: top.position } };
    let value = match text.value.as_str() {
        Here::BASTION => Here::Bastion,
        Here::SERVER => Here::Server,
        worker => Here::Worker(worker.to_owned()),
    };
    Placed { value, position: text.position }
}

impl FileReader<'_> {
    fn whole(&mut self, top: &Fields<'_>, here: Placed<Here>) -> TunnelsFile {
        let id = self.id(top);
        let (known_hosts, tuning) = self.defaults(top);
        // where it cannot be read, nobody asks for what reporting needs
        let is_reporting = self.reader.switch(top, "report").unwrap_or(top.get("report").is_none());
        let server_url = self.reader.parse(top, "server_url", |text| match ServerUrl::parse(text) {
            Ok(url) => Ok(url.to_string()),
            Err(error) => Err(Rule::ServerUrl(error)),
        });
        let token_file = self.path(top, "token_file");
        let default_state_dir = || Placed { value: DEFAULT_STATE_DIR.into(), position: top.position };
        let state_dir = self.path(top, "state_dir").unwrap_or_else(default_state_dir);
        let server = self.server(top);
        let bastion_entries = self.reader.named(top, "bastions");
        let worker_entries = self.reader.named(top, "workers");
        let names = bastion_entries.iter().chain(&worker_entries).map(|entry| entry.key.value.clone());
        self.names.extend(names);
        TunnelsFile {
            id,
            here,
            state_dir,
            is_reporting,
            server_url: server_url.map(|url| url.value),
            token_file,
            known_hosts,
            tuning,
            server,
            bastions: bastion_entries.into_iter().map(|entry| self.bastion(entry)).collect(),
            workers: worker_entries.into_iter().map(|entry| self.worker(entry)).collect(),
            forwards: self.reader.named(top, "forwards").into_iter().map(|entry| self.forward(entry)).collect(),
            key_files: std::mem::take(&mut self.key_files),
            vias: std::mem::take(&mut self.vias),
        }
    }

    fn id(&mut self, top: &Fields<'_>) -> Option<AgentName> {
        let text = self.reader.text(top, "id");
        let position = text.as_ref().map_or(top.position, |text| text.position);
        let name = text.map_or_else(|| self.surroundings.hostname.clone(), |text| text.value);
        let id = AgentName::new(name.clone());
        if id.is_none() {
            let of = if top.get("id").is_some() { Named::Agent } else { Named::AgentByHost };
            let name = shown(&name);
            self.reader.note(position, Fault::BadName { name, max: MAX_ID_CHARS, of });
        }
        id
    }

    fn defaults(&mut self, top: &Fields<'_>) -> (Vec<PathBuf>, Tuning) {
        let mut tuning = Tuning::default();
        let Some(node) = top.get("ssh") else { return (self.default_known_hosts(), tuning) };
        let ssh = self.reader.table(node, ("ssh", top.position_of("ssh")), SSH_KEYS);
        self.defaults.user = self.reader.parse(&ssh, "user", values::user).map(|user| user.value);
        self.defaults.credentials = self.credentials(&ssh);
        if let Some(interval) = self.reader.parse(&ssh, "keep_alive", values::keep_alive) {
            tuning.keep_alive_interval = interval.value;
        }
        if let Some(count) = self.reader.parse(&ssh, "keep_alives_unanswered", values::unanswered) {
            tuning.keep_alives_unanswered = count.value;
        }
        if self.reader.switch(&ssh, "compression") == Some(true) {
            tuning.compression = Compression::On;
        }
        let known_hosts = match ssh.get("known_hosts") {
            Some(_) => self.paths(&ssh, "known_hosts").into_iter().map(|path| path.value).collect(),
            None => self.default_known_hosts(),
        };
        (known_hosts, tuning)
    }

    fn default_known_hosts(&self) -> Vec<PathBuf> {
        let own = self.surroundings.home.iter().map(|home| home.join(".ssh/known_hosts"));
        std::iter::once(SYSTEM_KNOWN_HOSTS.into()).chain(own).collect()
    }

    fn path(&mut self, fields: &Fields<'_>, key: &str) -> Option<Placed<PathBuf>> {
        let home = self.surroundings.home.as_deref();
        self.reader.parse(fields, key, |text| values::path(text, home))
    }

    fn paths(&mut self, fields: &Fields<'_>, key: &str) -> Vec<Placed<PathBuf>> {
        let (home, path) = (self.surroundings.home.as_deref(), fields.path_of(key));
        let texts = self.reader.texts(fields, key);
        texts.iter().filter_map(|text| self.reader.parse_text(text, &path, |text| values::path(text, home))).collect()
    }

    fn credentials(&mut self, fields: &Fields<'_>) -> Credentials {
        let paths = self.paths(fields, "identity");
        let certificate = self.path(fields, "certificate");
        let is_agent_used = self.reader.switch(fields, "agent");
        if is_agent_used == Some(true) && self.surroundings.agent.is_none() {
            let fault = Fault::NoAgent { key: fields.path_of("agent") };
            self.reader.note(fields.position_of("agent"), fault);
        }
        if certificate.is_some() && paths.len() != 1 {
            self.clash(fields, "certificate", Clash::CertificateOfOneKey);
        }
        let certificate = certificate.filter(|_| paths.len() == 1).map(|path| path.value);
        let key = fields.path_of("identity");
        let key_file = |Placed { value, position }| KeyFile {
            key: key.clone(),
            position,
            path: value,
            certificate: certificate.clone(),
        };
        let files: Vec<KeyFile> = paths.into_iter().map(key_file).collect();
        self.key_files.extend(files.clone());
        Credentials { keys: fields.get("identity").map(|_| files), is_agent_used }
    }

    /// A table's own credentials, and the defaults for what it does not say.
    fn identities(&mut self, fields: &Fields<'_>) -> Vec<Identity> {
        let own = self.credentials(fields);
        let defaults = &self.defaults.credentials;
        let is_agent_used = own.is_agent_used.or(defaults.is_agent_used).unwrap_or(false);
        let keys = own.keys.or_else(|| defaults.keys.clone());
        let is_named = keys.is_some();
        let from_file = |file: KeyFile| Identity::KeyFile { path: file.path, certificate: file.certificate };
        let mut identities: Vec<Identity> = keys.unwrap_or_default().into_iter().map(from_file).collect();
        if is_agent_used {
            identities.extend(self.surroundings.agent.clone());
        }
        if !is_named && !is_agent_used {
            identities.extend(self.surroundings.default_keys.iter().map(Identity::key_file));
            self.look_at_default_keys();
        }
        identities
    }

    /// An agent can no more use an encrypted one than one that the file names.
    fn look_at_default_keys(&mut self) {
        for path in &self.surroundings.default_keys {
            let key_file = KeyFile {
                key: "ssh.identity".to_owned(),
                position: self.ssh_position,
                path: path.clone(),
                certificate: None,
            };
            if !self.key_files.contains(&key_file) {
                self.key_files.push(key_file);
            }
        }
    }

    fn via(&mut self, fields: &Fields<'_>) -> Vec<Placed<String>> {
        let names = self.reader.texts(fields, "via");
        if !names.is_empty() {
            self.vias.push(Via { key: fields.path_of("via"), names: names.clone() });
        }
        names
    }

    /// How to log in at `ssh`. `fields` has the keys `ssh`, `via`, `user` and those of [`Credentials`].
    fn host(&mut self, fields: &Fields<'_>) -> Option<Host> {
        let via = self.via(fields);
        let identities = self.identities(fields);
        let own_user = self.reader.parse(fields, "user", values::user);
        let account: Placed<Account> = self.reader.parse(fields, "ssh", values::account)?;
        let Placed { value: Account { user, server }, position } = account;
        if user.is_some() && own_user.is_some() {
            self.clash(fields, "user", Clash::UserTwice);
        }
        let user = user.or(own_user.map(|user| user.value)).or_else(|| self.defaults.user.clone());
        let Some(user) = user else {
            let value = self.reader.text(fields, "ssh").map(|text| shown(&text.value)).unwrap_or_default();
            let fault = Fault::BadValue { key: fields.path_of("ssh"), value, rule: Rule::WhoLogsIn };
            self.reader.note(position, fault);
            return None;
        };
        Some(Host { user, server, identities, via, position })
    }

    fn server(&mut self, top: &Fields<'_>) -> Option<ServerEntry> {
        let node = top.get("server")?;
        let position = top.position_of("server");
        let server = self.reader.table(node, ("server", position), SERVER_KEYS);
        if server.get("address").is_none() {
            self.missing(&server, Lack::ServerAddress);
        }
        let address = self.reader.parse(&server, "address", |text| {
            let address = values::address(text)?;
            if values::is_wildcard(&address.host) {
                return Err(Rule::NoWildcard);
            }
            Ok(address)
        });
        let local_port = self.reader.parse(&server, "local_port", values::port).map(|port| port.value);
        let has_host = server.get("ssh").is_some();
        let host = if has_host { self.host(&server) } else { None };
        let via = match &host {
            Some(host) => host.via.clone(),
            // has been read, and told
            None if has_host => Vec::new(),
            None => self.via(&server),
        };
        if !has_host {
            self.without(&server, "ssh: user@host", &["user", "identity", "certificate", "agent"]);
        }
        let is_host_broken = has_host && host.is_none();
        Some(ServerEntry { address, host, via, local_port, is_host_broken, position })
    }

    /// Keys that nobody looks at, as what they belong to is not there.
    fn without(&mut self, fields: &Fields<'_>, needs: &'static str, keys: &[&str]) {
        for key in keys.iter().filter(|key| fields.get(key).is_some()) {
            self.reader.note(fields.position_of(key), Fault::NoEffect { key: fields.path_of(key), needs });
        }
    }

    fn missing(&mut self, fields: &Fields<'_>, lack: Lack) {
        if fields.is_table {
            self.reader.note(fields.position, Fault::Missing { table: fields.path.clone(), lack });
        }
    }

    fn clash(&mut self, fields: &Fields<'_>, key: &str, clash: Clash) {
        self.reader.note(fields.position_of(key), Fault::Conflict { key: fields.path_of(key), clash });
    }

    fn name(&mut self, key: &Placed<String>, of: Named) {
        let name = shown(&key.value);
        if name.len() > MAX_NAME_CHARS || ForwardId::new(name.clone()).is_none() {
            self.reader.note(key.position, Fault::BadName { name, max: MAX_NAME_CHARS, of });
        }
    }

    fn bastion(&mut self, Entry { key, value }: &Entry) -> BastionEntry {
        self.name(key, Named::Bastion);
        if key.value == Here::SERVER {
            self.reader.note(key.position, Fault::ReservedName { name: key.value.clone(), of: Named::Bastion });
        }
        let path = format!("bastions.{}", shown(&key.value));
        let fields = self.reader.table(value, (&path, key.position), BASTION_KEYS);
        if fields.get("ssh").is_none() {
            self.missing(&fields, Lack::Login);
        }
        BastionEntry { name: key.clone(), host: self.host(&fields) }
    }

    fn worker(&mut self, Entry { key, value }: &Entry) -> WorkerEntry {
        self.name(key, Named::Worker);
        if [Here::SERVER, Here::BASTION].contains(&key.value.as_str()) {
            self.reader.note(key.position, Fault::ReservedName { name: key.value.clone(), of: Named::Worker });
        }
        let path = format!("workers.{}", shown(&key.value));
        let fields = self.reader.table(value, (&path, key.position), WORKER_KEYS);
        let is_here = self.here == Here::Worker(key.value.clone());
        let has_host = fields.get("ssh").is_some();
        if !has_host && !is_here {
            self.missing(&fields, Lack::Login);
        }
        if fields.get("health_check").is_none() {
            self.without(&fields, "health_check: true", &["health_port", "worker_port"]);
        }
        let name = self.reader.parse(&fields, "name", worker_name);
        WorkerEntry {
            key: key.clone(),
            name: name.map_or_else(|| key.value.clone(), |name| name.value),
            host: if has_host { self.host(&fields) } else { None },
            server_port: self.reader.parse(&fields, "server_port", values::port),
            has_health_check: self.reader.switch(&fields, "health_check").unwrap_or(false),
            worker_port: self.reader.parse(&fields, "worker_port", values::port),
            health_port: self.reader.parse(&fields, "health_port", values::port),
        }
    }

    fn forward(&mut self, Entry { key, value }: &Entry) -> ForwardEntry {
        self.name(key, Named::Forward);
        if key.value == Here::SERVER {
            self.reader.note(key.position, Fault::ReservedName { name: key.value.clone(), of: Named::Forward });
        }
        let path = format!("forwards.{}", shown(&key.value));
        let fields = self.reader.table(value, (&path, key.position), FORWARD_KEYS);
        let listen = self.listen(&fields);
        if fields.get("target").is_none() {
            self.missing(&fields, Lack::Target);
        }
        let target = self.reader.parse(&fields, "target", values::address).map(|target| target.value);
        let end = self.end(&fields);
        ForwardEntry { name: key.clone(), listen, target, end, workers: self.reader.texts(&fields, "workers") }
    }

    fn listen(&mut self, fields: &Fields<'_>) -> Option<Placed<Listen>> {
        let local = self.reader.parse(fields, "local", values::listen);
        let remote = self.reader.parse(fields, "remote", values::listen);
        match (fields.get("local").is_some(), fields.get("remote").is_some()) {
            (false, false) => {
                self.missing(fields, Lack::Listen);
                None
            }
            (true, true) => {
                self.clash(fields, "remote", Clash::BothEnds);
                None
            }
            _ => {
                let local = local.map(|Placed { value, position }| Placed { value: Listen::Local(value), position });
                local.or(remote.map(|Placed { value, position }| Placed { value: Listen::Remote(value), position }))
            }
        }
    }

    fn end(&mut self, fields: &Fields<'_>) -> Option<End> {
        if fields.get("ssh").is_none() {
            self.missing(fields, Lack::End);
            return None;
        }
        let text = self.reader.text(fields, "ssh")?;
        if !self.names.contains(&text.value) {
            let is_bare_word = !text.value.contains(['@', ':', '.']) && !is_placeholder(&text.value);
            if is_bare_word && fields.get("user").is_none() && self.defaults.user.is_none() {
                let nearest = nearest(&text.value, self.names.iter().map(String::as_str));
                let fault = Fault::NoSuchEnd { key: fields.path_of("ssh"), name: shown(&text.value), nearest };
                self.reader.note(text.position, fault);
                self.via(fields);
                return None;
            }
            return self.host(fields).map(End::Host);
        }
        for key in ["via", "user", "identity", "certificate", "agent"] {
            if fields.get(key).is_some() {
                self.clash(fields, key, Clash::NamedEnd);
            }
        }
        Some(End::Named(text))
    }
}

fn worker_name(text: &str) -> Result<String, Rule> {
    let fits = text.chars().count() <= MAX_WORKER_NAME_CHARS && !text.contains(char::is_control);
    fits.then(|| text.to_owned()).ok_or(Rule::WorkerName(MAX_WORKER_NAME_CHARS))
}

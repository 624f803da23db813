//! English.

use super::super::problem::{Clash, Expected, Fault, KeyFault, Lack, Named, PortTaken, Rule, TokenFault};
use super::super::syntax::Slip;
use super::super::yaml::MAX_BYTES;
use super::path_of;
use app::i18n::Language;
use std::path::Path;

/// What is wrong, and what to write instead.
#[expect(clippy::too_many_lines, reason = "one sentence for each fault; the compiler sees that none is missing")]
pub fn fault(fault: &Fault) -> String {
    match fault {
        Fault::Syntax { slip } => format!("this is no YAML: {}", self::slip(slip)),
        Fault::TooLarge { bytes } => {
            format!("the file has {bytes} bytes; a file with tunnels has at most {MAX_BYTES}")
        }
        Fault::TooDeep => "this is nested deeper than anything in a file with tunnels".to_owned(),
        Fault::Anchor => {
            "anchors (`&`) and aliases (`*`) are not read; put what all hosts have in common under `ssh:` at \
                          the top"
                .to_owned()
        }
        Fault::Tag => "tags (`!`) are not read; put text that begins with `!` into quotes".to_owned(),
        Fault::SecondDocument => "a second document begins here; a file holds one, so take the `---` out".to_owned(),
        Fault::KeyIsNoWord => "a key must be a word".to_owned(),
        Fault::Empty => {
            "the file is empty; it needs `server:` and `workers:`, or `forwards:` (docs/tunnels.md)".to_owned()
        }
        Fault::UnknownKey { table, key, nearest, known } => {
            let key = path_of(table, key);
            match nearest {
                Some(nearest) => format!("unknown key `{key}`; is `{nearest}` meant?"),
                None => format!("unknown key `{key}`; there are: {}", known.join(", ")),
            }
        }
        Fault::NoSpace { key, value, is_wide: true, .. } => {
            format!("the colon behind `{key}` is `：`; write `{key}: {value}`, with `:` and a space")
        }
        Fault::NoSpace { key, value, is_wide: false, .. } => {
            format!("the colon behind `{key}` needs a space: write `{key}: {value}`")
        }
        Fault::DottedKey { key, table, inner } => {
            format!("`{key}` is no key: write `{table}:`, and under it, indented, `{inner}:`")
        }
        Fault::DuplicateKey { key, first } => {
            format!("`{key}` stands here a second time; the first is in line {first}")
        }
        Fault::WrongType { key, expected } => {
            let key = if key.is_empty() { "the file".to_owned() } else { format!("`{key}`") };
            format!("{key} must be {}", self::expected(*expected))
        }
        Fault::HostKeyUnknown { host } => format!(
            "no file of known hosts has a key for {host}; compare and trust it with `gpustack tunnel trust --config` and \
             this file"
        ),
        Fault::KnownHosts { path, cause } => {
            format!("the file of known hosts {} cannot be used: {}", path.display(), cause.words(Language::En))
        }
        Fault::NoValue { key } => format!("`{key}` has no value; give it one, or take the line out"),
        Fault::BadValue { key, value, rule } => format!("`{key}` is `{value}`; {}", self::rule(rule)),
        Fault::Placeholder { key, value } => {
            format!("`{key}` is `{value}`, which stands for something else: write the real one in its place")
        }
        Fault::BadName { name, max, of } => {
            let hint = match of {
                Named::AgentByHost => "; it is the host's name, so write `id:` with another one",
                Named::Worker => ", and put the worker's own name under it as `name:`",
                Named::Agent | Named::Here | Named::Bastion | Named::Forward => "",
            };
            format!("`{name}` cannot be a name here: use up to {max} letters, digits, `.`, `_` and `-`{hint}")
        }
        Fault::ReservedName { name, of } => {
            format!("`{name}` means something else in this file; give this {} another name", named(*of))
        }
        Fault::Missing { table, lack } => {
            let what = if table.is_empty() { "the file".to_owned() } else { format!("`{table}`") };
            format!("{what} has no `{}`: write {}", lack.key(), example(*lack))
        }
        Fault::Conflict { key, clash } => {
            format!("`{key}` and `{}` do not go together: {}", clash.other(), self::clash(*clash))
        }
        Fault::NoEffect { key, needs } => {
            format!("`{key}` does nothing without `{needs}` beside it: write that too, or take `{key}` out")
        }
        Fault::UnknownName { key, name, of, nearest } => {
            let what = match of {
                Named::Here => "worker (or write bastion, or server)",
                Named::Bastion => "bastion under `bastions:`",
                Named::Worker => "worker under `workers:`",
                Named::Agent | Named::AgentByHost | Named::Forward => named(*of),
            };
            format!("`{key}` names `{name}`, and there is no such {what}{}", did_you_mean(nearest.as_deref()))
        }
        Fault::NoSuchEnd { key, name, nearest } => format!(
            "`{key}` is `{name}`, and no bastion and no worker of this file has that name; a host of that name is written \
             with who logs in, `user@{name}`{}",
            did_you_mean(nearest.as_deref())
        ),
        Fault::Circle { names } => {
            format!("the way leads in a circle: {}; take one `via` out", names.join(" → "))
        }
        Fault::PassesTwice { end, hop } => {
            format!("the way to `{end}` passes {hop} twice; take one of them out")
        }
        Fault::EndsHere { name } => {
            format!("`{name}` is this agent's own host, to which nothing has to be forwarded; name another one")
        }
        Fault::SameWorkerName { name, first_line } => format!(
            "the worker in line {first_line} is called `{name}` too; write the name that this one is started with"
        ),
        Fault::PortTaken(taken) => {
            let PortTaken { forward, listen, host, other, other_line, remedy } = &**taken;
            let host = host.as_deref().unwrap_or("this host");
            let port = remedy.map_or_else(|| "port".to_owned(), |key| format!("`{key}:`"));
            format!(
                "`{forward}` listens at {listen} on {host}, where `{other}` (line {other_line}) listens already; write \
                 another {port}"
            )
        }
        Fault::ForwardNameTaken { id, first } => format!(
            "what stands in line {first} has a forward called `{id}` already; the agent calls its own WORKER.server, \
             WORKER.health and WORKER.health-here, so give this one another name"
        ),
        Fault::HealthCheckNeedsServer { worker } => format!(
            "health checks of `{worker}` come to a port of the server's host, where the agent has to log in: write `ssh: \
             user@host` under `server:`, or `health_check: false`; workers of this version need none"
        ),
        Fault::PortsDiffer { worker, worker_port, health_port } => format!(
            "`{worker}` has `worker_port: {worker_port}` and `health_port: {health_port}`; the server asks at the port \
             that the worker was started with, so write the same, or leave one out"
        ),
        Fault::PortRemembered { worker, port, other, file } => {
            format!("`{worker}` wants port {port}, which is remembered for `{other}` in {file}; choose another one")
        }
        Fault::NoPortLeft { worker, file } => {
            format!("no port from 10150 to 65535 is left for `{worker}`; take workers that are gone out of {file}")
        }
        Fault::Nothing => {
            "nothing is to be forwarded: add a worker under `workers:`, or something under `forwards:`".to_owned()
        }
        Fault::StateDirIsFile { path } => {
            format!(
                "`state_dir` is {}, which is a file; write a folder, which the agent makes by itself",
                path.display()
            )
        }
        Fault::StateDirTooLong { bytes, max } => format!(
            "the path of `state_dir` has {bytes} bytes, which is too long for the socket in it: choose one of at most {max}"
        ),
        Fault::Key { key, fault } => format!("`{key}`: {}", key_fault(fault)),
        Fault::NoIdentity { key } => format!(
            "`{key}` has no key to log in with: write `identity: /path/to/key` under `ssh:`, or `agent: true` for \
             ssh-agent's"
        ),
        Fault::NoAgent { key } => {
            format!("`{key}` is true, and SSH_AUTH_SOCK is not set: start ssh-agent, or write `identity: /path/to/key`")
        }
        Fault::TokenFile { key, path, fault } => format!("`{key}`: {}", token_fault(path, fault)),
    }
}

fn slip(slip: &Slip) -> String {
    match slip {
        Slip::Tab => "a tab stands here; YAML indents with spaces only".to_owned(),
        Slip::NoColon { line } => format!("`{line}` has no colon; write `key: value`, or `key:` above a table"),
        Slip::NoSpace { key, value } => format!("the colon behind `{key}` needs a space: write `{key}: {value}`"),
        Slip::WideColon { key } => format!("the colon behind `{key}` is `：`; write `:` and a space"),
        Slip::ColonInValue => "this value has a colon in it; put it into quotes, or into a line of its own".to_owned(),
        Slip::OpenQuote => "this quotation mark does not close in its line; write the other one".to_owned(),
        Slip::BehindQuote => {
            "something stands behind the closing quotation mark; put all of the value into quotes".to_owned()
        }
        Slip::Escape => {
            "a backslash in double quotes begins something that does not exist; write single quotes".to_owned()
        }
        Slip::OpenBracket { bracket } => {
            format!("this `{bracket}` does not close; write `{}` at the end", closing(*bracket))
        }
        Slip::NoComma => "a comma is missing before this, between two entries in brackets".to_owned(),
        Slip::StrayBracket => {
            "this bracket closes none that is open; take it out, or put the value into quotes".to_owned()
        }
        Slip::Indentation => {
            "this line is indented otherwise than those that it belongs to; lines of one table begin in one column"
                .to_owned()
        }
        Slip::ListBehindKey => {
            "a list with `-` begins in the line under its key; in one line it is written [a, b]".to_owned()
        }
        Slip::NeedsQuotes { first } => {
            format!("a value that begins with `{first}` means something else in YAML; put it into quotes")
        }
        Slip::Other { said } => format!("its reader says “{said}”"),
    }
}

/// The other half of a bracket.
fn closing(bracket: char) -> char {
    if bracket == '[' { ']' } else { '}' }
}

fn expected(expected: Expected) -> &'static str {
    match expected {
        Expected::Table => "a table of `key: value` lines",
        Expected::Common => {
            "a table of what all hosts have in common, such as `user:` and `identity:`; `ssh: user@host` of one host \
             stands under that one's name"
        }
        Expected::OneValue => "one value; text with brackets, as of IPv6, goes into quotes",
    }
}

fn rule(rule: &Rule) -> String {
    let words = match rule {
        Rule::Switch => "write true or false",
        Rule::Account => "write user@host, or user@host:port",
        Rule::BareAccount => "write user@host, or user@host:port, and nothing else",
        Rule::Brackets => "put an IPv6 address into brackets: user@[fe80::1]:22",
        Rule::User => "the user must be the name of an account, such as tunnel",
        Rule::WhoLogsIn => "say who logs in: write user@host, or `user:` under `ssh:` at the top",
        Rule::NoUrl => "write host:port without http:// and without a path, such as 10.0.0.1:8090",
        Rule::Address => "write host:port, such as 10.0.0.1:8090, or [fe80::1]:8090 for IPv6",
        Rule::NoWildcard => "nobody can connect to that; write 127.0.0.1 or the host's address",
        Rule::NoStar => "write 0.0.0.0 in place of `*`; then every host of the network gets in",
        Rule::Port => "a port is a number from 1 to 65535",
        Rule::PlainPath => "a path holds no control characters",
        Rule::NoHome => "HOME is not set, so write the whole path",
        Rule::WholePath => "write the whole path, from / or ~/ on",
        Rule::KeepAlive => "write a time from 1s to 1h, such as 10s",
        Rule::Unanswered => "write a number from 0 to 100",
        // that text is for a flag, of which a file has a key
        Rule::ServerUrl(error) => return error.to_string().replace("--token", "`token_file`"),
        Rule::WorkerName(max) => return format!("a worker's name has at most {max} characters"),
    };
    words.to_owned()
}

fn named(of: Named) -> &'static str {
    match of {
        Named::Agent | Named::AgentByHost => "agent",
        Named::Here => "host",
        Named::Bastion => "bastion",
        Named::Worker => "worker",
        Named::Forward => "forward",
    }
}

fn example(lack: Lack) -> &'static str {
    match lack {
        Lack::Server => "`server: {address: 10.0.0.1:8090}`",
        Lack::ReportServer => "`server: {address: 10.0.0.1:8090}`, or `report: false` when no server is to be told",
        Lack::WayToServer => "`ssh: user@host`, or `via:` with the bastions on the way",
        Lack::EndAtServer => "`ssh: user@host` under `server:`, as a forward ends there",
        Lack::ServerAddress => "`address: 10.0.0.1:8090`, where the server listens",
        Lack::Login => "`ssh: user@host`",
        Lack::End => "`ssh: user@host`, or the name of a worker or bastion of this file",
        Lack::Target => "`target: host:port`, where its connections go",
        Lack::Listen => {
            "`local: host:port` for a port of this host, or `remote: host:port` for one of the SSH server's"
        }
    }
}

fn clash(clash: Clash) -> &'static str {
    match clash {
        Clash::CertificateOfOneKey => {
            "a certificate is for one key: name that one, or let the certificates lie beside their keys as KEY-cert.pub"
        }
        Clash::UserTwice => "name the user once",
        Clash::BothEnds => "a forward listens at one end; make two of it",
        Clash::NamedEnd => "`ssh` names an entry of this file, which says that already",
        Clash::NoForwardNeeded => {
            "the address is reached without a forward; take the port out, or write `ssh:` under `server:`"
        }
    }
}

fn key_fault(fault: &KeyFault) -> String {
    match fault {
        KeyFault::PublicHalf { path, private } => {
            format!("{} is the public half; write {}", path.display(), private.display())
        }
        KeyFault::Encrypted { path } => {
            let path = path.display();
            format!(
                "the key in {path} is encrypted, and nobody will be there to type its passphrase; load it into ssh-agent \
                 with `ssh-add {path}`, and write `agent: true` in place of `identity`"
            )
        }
        KeyFault::Folder { path } => {
            let path = path.display();
            format!("{path} is a folder; write the file with the key, such as {path}/id_ed25519")
        }
        KeyFault::Unreadable { path, cause, owner } => {
            let owner = owner.map(|(owner, own)| {
                format!("; it belongs to user {owner}, and this is user {own}: `chown {own} {}`", path.display())
            });
            format!("cannot read {}: {}{}", path.display(), cause.words(Language::En), owner.unwrap_or_default())
        }
        KeyFault::Open { path, mode } => {
            let path = path.display();
            format!("{path} is open to other users (mode {mode:o}); make it private with `chmod 600 {path}`")
        }
        KeyFault::NoKey { path } => {
            let path = path.display();
            format!(
                "{path} holds no private key in OpenSSH's format; `ssh-keygen -p -f {path}` rewrites a key that is in an \
                 older one"
            )
        }
        KeyFault::NoCertificate { path } => format!("{} holds no OpenSSH certificate", path.display()),
        KeyFault::OtherKey { certificate, key } => {
            format!("the certificate in {} is for another key than the one in {}", certificate.display(), key.display())
        }
    }
}

fn token_fault(path: &Path, fault: &TokenFault) -> String {
    let path = path.display();
    match fault {
        TokenFault::Unreadable { cause } => format!(
            "cannot read {path}: {}; on the server, `gpustack token` prints what belongs there",
            cause.words(Language::En)
        ),
        TokenFault::Open { mode } => {
            format!("{path} is open to every user (mode {mode:o}); make it private with `chmod 600 {path}`")
        }
        TokenFault::Content(error) => format!("the join token in {path} {error}"),
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; is `{nearest}` meant?")).unwrap_or_default()
}

//! `gpustack tunnel ca`: the server as an SSH certificate authority.

use crate::commands::exit::CommandError;
use crate::commands::output;
use crate::commands::settings::ServerStateArgs;
use crate::config::{self, Environment};
use crate::data_dir::DataDir;
use crate::ssh_authority::{Authority, AuthorityError, Grant, Revocation, Signed, network};
use app::i18n::Language;
use app::i18n::system_words::SystemCause;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use ssh::PublicKey;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer ones are what certificates are to replace.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// What to do with it.
#[derive(Debug, Subcommand)]
pub enum CaCommand {
    /// Make the server on this host an SSH certificate authority
    Init(ServerStateArgs),
    /// Show what SSH servers have to be told, and what was signed
    Show(ServerStateArgs),
    /// Sign a key: its holder may log in for some days, and make forwards, and nothing else
    Sign(SignArgs),
    /// See to it that a key and its certificates are good no more
    Revoke(RevokeArgs),
}

/// What to sign.
#[derive(Debug, Args)]
pub struct SignArgs {
    #[command(flatten)]
    server: ServerStateArgs,
    /// The file with the public key, e.g. /etc/ssh/tunnel_keys/bastion-01.pub
    #[arg(value_name = "KEY.pub")]
    key: PathBuf,
    /// A user as whom its holder may log in; may be given more than once
    #[arg(long = "principal", value_name = "USER", required = true)]
    principals: Vec<String>,
    /// What sshd writes into its log [default: the key's comment]
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// An address or network from which its holder may come; may be given more than once [default: any]
    #[arg(long = "source-address", value_name = "NETWORK")]
    source_addresses: Vec<String>,
    /// For how long: a number with `m`, `h` or `d` behind it
    #[arg(long, value_name = "TIME", default_value = "7d")]
    valid_for: String,
    /// Do not give the key's tunnel agent a new certificate by itself when two thirds of the time are over
    #[arg(long)]
    no_renewal: bool,
    /// Where to write the certificate [default: KEY-cert.pub]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What to revoke.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    #[command(flatten)]
    server: ServerStateArgs,
    #[command(flatten)]
    what: What,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// The key of the certificate with this number
    #[arg(long, value_name = "NUMBER")]
    serial: Option<u64>,
    /// All keys whose certificates have this name
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// The key in this file
    #[arg(long, value_name = "KEY.pub")]
    key: Option<PathBuf>,
}

pub fn run(command: CaCommand) -> Result<(), CommandError> {
    match command {
        CaCommand::Init(args) => init(&args),
        CaCommand::Show(args) => show(&args),
        CaCommand::Sign(args) => sign(args),
        CaCommand::Revoke(args) => revoke(&args),
    }
}

impl From<AuthorityError> for CommandError {
    fn from(error: AuthorityError) -> Self {
        match error {
            AuthorityError::Folder(error) => error.into(),
            error @ (AuthorityError::None
            | AuthorityError::Exists
            | AuthorityError::NothingSigned(_)
            | AuthorityError::Revoked { .. }
            | AuthorityError::Sign(_)) => Self::usage(error),
            error => Self::failed(error),
        }
    }
}

fn init(args: &ServerStateArgs) -> Result<(), CommandError> {
    let authority = Authority::init(&data_dir(args)?)?;
    output::print(&advice(&authority)?)?;
    Ok(())
}

fn show(args: &ServerStateArgs) -> Result<(), CommandError> {
    let authority = Authority::open(&data_dir(args)?)?;
    let mut text = advice(&authority)?;
    text.push('\n');
    text.push_str(&list(&authority.signed()?, Utc::now()));
    output::print(&text)?;
    Ok(())
}

fn data_dir(args: &ServerStateArgs) -> Result<DataDir, CommandError> {
    let environment = Environment::of_process();
    Ok(DataDir::existing(&config::data_dir(&args.sources(&environment)?)?)?)
}

/// What is to be done on each host that is to trust the authority.
fn advice(authority: &Authority) -> Result<String, CommandError> {
    Ok(format!(
        "The authority's public key ({public_key_file}):\n\n  {public_key}\n\n\
         On each host that tunnels log in to, put that line into /etc/ssh/gpustack_ca.pub, copy\n{revoked_file}\n\
         to /etc/ssh/gpustack_revoked_keys, again after each `gpustack tunnel ca revoke`, add to /etc/ssh/sshd_config\n\n  \
         TrustedUserCAKeys /etc/ssh/gpustack_ca.pub\n  RevokedKeys /etc/ssh/gpustack_revoked_keys\n\n\
         and have sshd read it: `systemctl reload ssh` on Debian and Ubuntu, `systemctl reload sshd` on RHEL, openEuler\n\
         and Kylin. A certificate lets its holder in as the users that it names (--principal) and nobody else.\n",
        public_key_file = authority.public_key_file().display(),
        public_key = authority.public_key()?.trim(),
        revoked_file = authority.revoked_file().display(),
    ))
}

fn list(signed: &[Signed], now: DateTime<Utc>) -> String {
    if signed.is_empty() {
        return "Nothing was signed yet: `gpustack tunnel ca sign KEY.pub --principal USER`.\n".to_owned();
    }
    let mut text = String::from("Signed:\n");
    for signed in signed {
        let Signed { serial, grant, until, .. } = signed;
        let from = match grant.source_addresses.as_slice() {
            [] => "anywhere".to_owned(),
            networks => networks.join(", "),
        };
        let state = match signed.revoked {
            Some(at) => format!("revoked {}", minute(at)),
            None if *until <= now => format!("ended {}", minute(*until)),
            None if grant.is_renewed => format!("until {}, renewed by itself", minute(*until)),
            None => format!("until {}", minute(*until)),
        };
        // writing to a text cannot fail
        let _ = writeln!(text, "  {serial}  {}  as {} from {from}  {state}", grant.key_id, grant.principals.join(", "));
    }
    text
}

fn minute(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M UTC").to_string()
}

fn sign(args: SignArgs) -> Result<(), CommandError> {
    let key = read_key(&args.key)?;
    for text in &args.source_addresses {
        network(text).map_err(|problem| CommandError::usage(format!("--source-address: {problem}")))?;
    }
    let comment = key.comment().to_string();
    let key_id = args.id.or_else(|| (!comment.is_empty()).then_some(comment)).ok_or_else(|| {
        CommandError::usage(format!("the key in {} has no comment; give it a name with --id", args.key.display()))
    })?;
    let grant = Grant {
        public_key: key.to_openssh().map_err(CommandError::failed)?,
        key_id,
        principals: args.principals,
        source_addresses: args.source_addresses,
        lifetime_s: lifetime_s(&args.valid_for)?,
        is_renewed: !args.no_renewal,
    };
    let authority = Authority::open(&data_dir(&args.server)?)?;
    let certificate = authority.sign(&grant, Utc::now())?;
    let out = args.out.unwrap_or_else(|| certificate_file(&args.key));
    std::fs::write(&out, format!("{}\n", certificate.trim_end()))
        .map_err(|error| CommandError::failed(format!("cannot write {}: {error}", out.display())))?;
    output::print(&format!(
        "{} is good for {}, as {}. Put it beside the private key.\n",
        out.display(),
        args.valid_for,
        grant.principals.join(", ")
    ))?;
    Ok(())
}

fn lifetime_s(text: &str) -> Result<u32, CommandError> {
    let lifetime = config::length_of_time(text).filter(|lifetime| !lifetime.is_zero() && *lifetime <= LONGEST);
    let lifetime = lifetime.ok_or_else(|| {
        CommandError::usage(format!("--valid-for is `{text}`; write a time up to 366d, such as 7d, 12h or 30m"))
    })?;
    u32::try_from(lifetime.as_secs()).map_err(CommandError::usage)
}

fn revoke(args: &RevokeArgs) -> Result<(), CommandError> {
    let what = match &args.what {
        What { serial: Some(serial), .. } => Revocation::Serial(*serial),
        What { id: Some(id), .. } => Revocation::KeyId(id.clone()),
        What { key: Some(file), .. } => Revocation::Key(read_key(file)?),
        // the group demands one of them
        What { .. } => return Err(CommandError::usage("name what to revoke")),
    };
    let authority = Authority::open(&data_dir(&args.server)?)?;
    let revoked = authority.revoke(&what, Utc::now())?;
    if revoked.is_empty() {
        output::print("Nothing more is revoked by that: it was before, or the key has no certificate.\n")?;
        return Ok(());
    }
    output::print(&format!(
        "Revoked: {}. No such key gets another certificate. Copy {} to the hosts' `RevokedKeys` now: sshd reads it at each\n\
         login. Sessions that stand go on until they are ended there.\n",
        revoked
            .iter()
            .map(|signed| format!("{} ({})", signed.grant.key_id, signed.serial))
            .collect::<Vec<_>>()
            .join(", "),
        authority.revoked_file().display()
    ))?;
    Ok(())
}

fn read_key(path: &Path) -> Result<PublicKey, CommandError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let cause = SystemCause::of(&error).words(Language::En);
        CommandError::usage(format!("cannot read {shown}: {cause}; name the .pub file of the key pair"))
    })?;
    PublicKey::from_openssh(&text).map_err(|_| {
        let what = if text.contains("PRIVATE KEY") { "the private key" } else { "no public key in OpenSSH's format" };
        CommandError::usage(format!("{shown} holds {what}; name the .pub file of the key pair"))
    })
}

/// Where `ssh` looks for it: `KEY-cert.pub` beside `KEY.pub`.
fn certificate_file(public_key: &Path) -> PathBuf {
    let stem = public_key.with_extension("");
    let name = stem.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    stem.with_file_name(format!("{name}-cert.pub"))
}

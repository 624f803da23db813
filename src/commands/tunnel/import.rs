//! `gpustack tunnel import`: a `tunnels.yaml` of `ssh` commands.

use super::super::exit::CommandError;
use super::super::{language, output};
use crate::tunnel::import::{Comments, ImportNote, NoteKind, import};
use app::i18n::tunnel_import::{TunnelImportMessages, messages};
use clap::Args;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Nobody has so many commands.
const MAX_BYTES: u64 = 1024 * 1024;

const EXIT: &str = "Prints the file on standard output, and on standard error what was not taken over. \
Ends with 0 when every forward was, with 1 when one was left out, with 2 when there was none.";

/// What to read.
#[derive(Debug, Args)]
#[command(after_help = EXIT)]
pub struct ImportArgs {
    /// A file with ssh commands, such as a script or a shell's history; - for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: String,
    /// The language of the words: en or zh [default: the locale's]
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
}

pub fn run(args: &ImportArgs) -> Result<(), CommandError> {
    let words = messages(language::choose(args.language.as_deref(), &language::text_variables())?);
    let text = read(&args.file).map_err(|error| CommandError::usage(format!("cannot read {}: {error}", args.file)))?;
    let imported = import(&text, &comments(words));
    for line in note_lines(&imported.notes, words) {
        eprintln!("{line}");
    }
    let Some(yaml) = imported.yaml else { return Err(CommandError::usage(words.nothing)) };
    output::print(&yaml)?;
    match imported.notes.iter().filter(|note| note.kind.is_loss()).count() {
        0 => Ok(()),
        count => Err(CommandError::failed((words.lost)(count))),
    }
}

fn read(name: &str) -> io::Result<String> {
    let source: Box<dyn Read> =
        if name == "-" { Box::new(io::stdin()) } else { Box::new(File::open(Path::new(name))?) };
    let mut bytes = Vec::new();
    source.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_BYTES) {
        return Err(io::Error::other(format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn comments(words: &TunnelImportMessages) -> Comments {
    Comments { heading: words.heading, token_file: words.token_file, no_server: words.no_server }
}

/// A line for each note; one for all lines that hold no ssh command, of which a script may have hundreds.
fn note_lines(notes: &[ImportNote], words: &TunnelImportMessages) -> Vec<String> {
    let is_prose = |note: &&ImportNote| matches!(note.kind, NoteKind::NotSsh { .. });
    let prose: Vec<usize> = notes.iter().filter(is_prose).map(|note| note.line).collect();
    if prose.len() < 2 {
        return notes.iter().map(|note| note_line(note, words)).collect();
    }
    let others = notes.iter().filter(|note| !is_prose(note)).map(|note| note_line(note, words));
    others.chain([(words.not_ssh_lines)(&ranges(&prose))]).collect()
}

/// Numbers in their order, as `3, 5-9, 12`.
fn ranges(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *number <= *last + 1 => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let text = |(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn note_line(ImportNote { line, kind }: &ImportNote, words: &TunnelImportMessages) -> String {
    let text = match kind {
        NoteKind::NotSsh { program } => (words.not_ssh)(program),
        NoteKind::CommandInComment => words.command_in_comment.to_owned(),
        NoteKind::UnclosedQuote => words.unclosed_quote.to_owned(),
        NoteKind::NoForward => words.no_forward.to_owned(),
        NoteKind::NoHost => words.no_host.to_owned(),
        NoteKind::Dynamic { forward } => (words.dynamic)(forward),
        NoteKind::Socket { forward } => (words.socket)(forward),
        NoteKind::BadForward { forward } => (words.bad_forward)(forward),
        NoteKind::Placeholder { text } => (words.placeholder)(text),
        NoteKind::NotTakenOver { option } => (words.not_taken_over)(option),
        NoteKind::OpenToNetwork => words.open_to_network.to_owned(),
        NoteKind::CompressesAll => words.compresses_all.to_owned(),
        NoteKind::SlowKeepAlive { interval_s, unanswered } => (words.slow_keep_alive)(*interval_s, *unanswered),
        NoteKind::HostKeysAreChecked => words.host_keys_are_checked.to_owned(),
        NoteKind::Password => words.password.to_owned(),
        NoteKind::HealthCheckUnclear { port } => (words.health_check_unclear)(*port),
        NoteKind::WorkerNamed { name } => (words.worker_named)(name),
    };
    (words.line)(*line, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use app::i18n::Language;

    const TEXT: &str = "
# ssh -NfL 1:a:1 b
docker run x
ssh -fN -D 1080 a@b
ssh -N -L 1:/run/x root@a
ssh root@a
ssh -N -L 1:a:1
ssh -N -L x root@a
sshpass -p secret ssh -o StrictHostKeyChecking=no -A -CfNg -o ServerAliveInterval=60 -L 8090:<IP>:8090 root@<IP>
ssh -fN -R 8090:127.0.0.1:8090 root@npu-1
ssh -fN -R 10150:127.0.0.1:10150 root@other
echo 'x";

    fn notes(language: Language) -> String {
        let words = messages(language);
        let notes = import(TEXT, &comments(words)).notes;
        note_lines(&notes, words).join("\n")
    }

    #[test]
    fn lines_of_prose_share_a_line() {
        assert_eq!(ranges(&[3, 5, 6, 7, 7, 9]), "3, 5-7, 9");
        let words = messages(Language::En);
        let notes = import("ls\nssh -N -L 1:a:1 root@b\ncd /\necho a\n", &comments(words)).notes;
        assert_eq!(note_lines(&notes, words), ["lines 1, 3-4: these are no ssh commands; left out"]);
    }

    #[test]
    fn every_note_is_told_in_english() {
        insta::assert_snapshot!(notes(Language::En));
    }

    #[test]
    fn every_note_is_told_in_chinese() {
        insta::assert_snapshot!(notes(Language::Zh));
    }

    #[test]
    fn no_password_is_repeated() {
        assert!(!notes(Language::En).contains("secret"));
    }
}

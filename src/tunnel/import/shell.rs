//! Words as a shell makes them, with placeholders and variables left as they are.

use super::{ImportNote, NoteKind};
use std::iter::Peekable;
use std::str::Chars;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// Where it begins, from 1.
    pub line: usize,
    /// Its words.
    pub words: Vec<String>,
}

/// All commands of a text.
pub fn commands(text: &str) -> (Vec<CommandLine>, Vec<ImportNote>) {
    let mut scanner = Scanner {
        rest: text.chars().peekable(),
        line: 1,
        word: None,
        words: Vec::new(),
        begun_in: 1,
        skips_word: false,
        commands: Vec::new(),
        notes: Vec::new(),
    };
    scanner.all();
    (scanner.commands, scanner.notes)
}

struct Scanner<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
    /// The word at hand; empty quotes make an empty one.
    word: Option<String>,
    words: Vec<String>,
    /// The line in which the command at hand begins.
    begun_in: usize,
    /// The next word is a file that something is read from or written to.
    skips_word: bool,
    commands: Vec<CommandLine>,
    notes: Vec<ImportNote>,
}

impl Scanner<'_> {
    fn all(&mut self) {
        while let Some(c) = self.next() {
            match c {
                '\\' => self.escaped(),
                '\'' => self.quoted('\''),
                '"' => self.quoted('"'),
                '#' if self.word.is_none() => self.comment(),
                '<' if self.is_placeholder() => self.placeholder(),
                '<' | '>' => self.redirection(),
                '$' => self.variable(),
                // the `&` of `2>&1` goes with the redirection
                '\n' | ';' | '|' | '&' => self.end_command(),
                c if c.is_whitespace() => self.end_word(),
                c => self.push(c),
            }
        }
        self.end_command();
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.line += 1;
        }
        Some(c)
    }

    fn push(&mut self, c: char) {
        if self.words.is_empty() && self.word.is_none() {
            self.begun_in = self.line;
        }
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if !std::mem::take(&mut self.skips_word) {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.skips_word = false;
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.commands.push(CommandLine { line: self.begun_in, words });
        }
    }

    fn escaped(&mut self) {
        match self.next() {
            Some('\n') | None => {}
            Some('\r') if self.rest.peek() == Some(&'\n') => {
                self.next();
            }
            // a `\` before a space at the end of a line is a continuation that somebody spoilt
            Some(c) if c.is_whitespace() && self.is_rest_of_line_blank() => self.skip_line(),
            Some(c) => self.push(c),
        }
    }

    fn is_rest_of_line_blank(&self) -> bool {
        self.rest.clone().take_while(|c| *c != '\n').all(char::is_whitespace)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {}
    }

    fn quoted(&mut self, quote: char) {
        let line = self.line;
        if self.words.is_empty() && self.word.is_none() {
            self.begun_in = line;
        }
        self.word.get_or_insert_default();
        loop {
            match self.next() {
                None => return self.notes.push(ImportNote { line, kind: NoteKind::UnclosedQuote }),
                Some(c) if c == quote => return,
                Some('\\') if quote == '"' => match self.next() {
                    Some('\n') | None => {}
                    Some(c) if "\"\\$`".contains(c) => self.push(c),
                    Some(c) => {
                        self.push('\\');
                        self.push(c);
                    }
                },
                Some(c) => self.push(c),
            }
        }
    }

    fn comment(&mut self) {
        let line = self.line;
        let text: String = self.rest.clone().take_while(|c| *c != '\n').collect();
        if text.contains("ssh -") {
            self.notes.push(ImportNote { line, kind: NoteKind::CommandInComment });
        }
        for _ in text.chars() {
            self.next();
        }
    }

    /// `<server's address>`, not `< file`.
    fn is_placeholder(&self) -> bool {
        let rest: String = self.rest.clone().take_while(|c| !matches!(c, '\n' | '<')).collect();
        rest.find('>').is_some_and(|end| end > 0) && !rest.starts_with([' ', '/', '&', '('])
    }

    fn placeholder(&mut self) {
        self.push('<');
        while let Some(c) = self.next() {
            self.push(c);
            if c == '>' {
                return;
            }
        }
    }

    fn redirection(&mut self) {
        // the number of a file, as in `2>`
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        while self.rest.next_if(|c| matches!(c, '<' | '>' | '&')).is_some() {}
        self.skips_word = true;
    }

    /// `$NAME`, `${NAME}` and `$(command)` as they stand.
    fn variable(&mut self) {
        self.push('$');
        let closing = match self.rest.peek() {
            Some('{') => '}',
            Some('(') => ')',
            _ => return,
        };
        while self.rest.peek().is_some_and(|c| *c != '\n') {
            let Some(c) = self.next() else { return };
            self.push(c);
            if c == closing {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(usize, Vec<String>)> {
        commands(text).0.into_iter().map(|command| (command.line, command.words)).collect()
    }

    fn one(line: usize, words: &[&str]) -> (usize, Vec<String>) {
        (line, words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn words_are_made_as_a_shell_makes_them() {
        assert_eq!(words("a 'b c' \"d\\\"e\" f\\ g ''"), [one(1, &["a", "b c", "d\"e", "f g", ""])]);
        assert_eq!(
            words("# x\n\na \\\n  b\nc;d && e & f"),
            [one(3, &["a", "b"]), one(5, &["c"]), one(5, &["d"]), one(5, &["e"]), one(5, &["f"])]
        );
        assert_eq!(words("a \\ \n b"), [one(1, &["a", "b"])]);
        assert_eq!(words("a#b # c"), [one(1, &["a#b"])]);
    }

    #[test]
    fn redirections_are_no_words() {
        assert_eq!(words("a > /dev/null 2>&1 < /dev/null b >>x"), [one(1, &["a", "b"])]);
    }

    #[test]
    fn placeholders_and_variables_stay_what_they_are() {
        let text = "ssh root@<NPU 服务器IP> -L 8090:<A>:8090 x${TUNNEL_ID}y $(host name) $X";
        assert_eq!(
            words(text),
            [one(1, &["ssh", "root@<NPU 服务器IP>", "-L", "8090:<A>:8090", "x${TUNNEL_ID}y", "$(host name)", "$X"])]
        );
    }

    #[test]
    fn what_is_lost_is_told() {
        assert_eq!(commands("\n# 执行 ssh -NfL 1:a:1 b").1, [ImportNote { line: 2, kind: NoteKind::CommandInComment }]);
        assert_eq!(commands("a\nb 'c").1, [ImportNote { line: 2, kind: NoteKind::UnclosedQuote }]);
    }
}

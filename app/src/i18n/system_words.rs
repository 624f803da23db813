//! What the system says of files and networks, in the reader's language. No browser has it.
//!
//! Linux and the C library have some hundred sentences, in English. Those that people meet have texts of their own here;
//! every other one is quoted, and set off as what it is.

use super::Language;
use std::io::{self, ErrorKind};

/// A cause that the system names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SystemCause {
    /// No such file, or no folder on the way to it.
    NotFound,
    /// This user may not.
    NotAllowed,
    /// A folder where a file should be.
    IsFolder,
    /// A file where a folder should be.
    IsNoFolder,
    /// There is something of that name.
    Exists,
    /// The disk is full.
    NoSpace,
    /// Nobody may write there.
    ReadOnly,
    /// The process or the host has no more of them.
    TooManyFiles,
    /// No text, but bytes.
    NoText,
    /// Nobody listens there.
    Refused,
    /// Nothing came back.
    TimedOut,
    /// A router says that the host is not there.
    HostUnreachable,
    /// No route leads there.
    NetworkUnreachable,
    /// The other side broke the connection.
    Reset,
    /// The other side does not read any more.
    BrokenPipe,
    /// The other side closed the connection in the middle.
    UnexpectedEnd,
    /// Somebody listens there.
    AddressInUse,
    /// No interface has the address.
    NoSuchAddress,
    /// DNS and /etc/hosts do not have the name.
    UnknownName,
    /// DNS does not answer.
    NoNameServer,
    /// Something else, in its own words.
    Other(String),
}

/// How Linux, the C library and OpenSSH say it.
const SENTENCES: &[(&str, SystemCause)] = &[
    ("no such file or directory", SystemCause::NotFound),
    ("permission denied", SystemCause::NotAllowed),
    ("operation not permitted", SystemCause::NotAllowed),
    ("is a directory", SystemCause::IsFolder),
    ("not a directory", SystemCause::IsNoFolder),
    ("file exists", SystemCause::Exists),
    ("no space left on device", SystemCause::NoSpace),
    ("read-only file system", SystemCause::ReadOnly),
    ("too many open files", SystemCause::TooManyFiles),
    ("too many open files in system", SystemCause::TooManyFiles),
    ("stream did not contain valid utf-8", SystemCause::NoText),
    ("connection refused", SystemCause::Refused),
    ("connection timed out", SystemCause::TimedOut),
    ("no route to host", SystemCause::HostUnreachable),
    ("network is unreachable", SystemCause::NetworkUnreachable),
    ("connection reset by peer", SystemCause::Reset),
    ("broken pipe", SystemCause::BrokenPipe),
    ("unexpected end of file", SystemCause::UnexpectedEnd),
    ("early eof", SystemCause::UnexpectedEnd),
    ("address already in use", SystemCause::AddressInUse),
    ("cannot assign requested address", SystemCause::NoSuchAddress),
    ("name or service not known", SystemCause::UnknownName),
    ("no address associated with hostname", SystemCause::UnknownName),
    ("temporary failure in name resolution", SystemCause::NoNameServer),
];

/// What Rust puts before the words of the resolver.
const RESOLVER: &str = "failed to lookup address information: ";

impl SystemCause {
    /// That of an error.
    pub fn of(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::PermissionDenied => Self::NotAllowed,
            ErrorKind::IsADirectory => Self::IsFolder,
            ErrorKind::NotADirectory => Self::IsNoFolder,
            ErrorKind::AlreadyExists => Self::Exists,
            ErrorKind::StorageFull => Self::NoSpace,
            ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
            ErrorKind::ConnectionRefused => Self::Refused,
            ErrorKind::ConnectionReset => Self::Reset,
            ErrorKind::BrokenPipe => Self::BrokenPipe,
            ErrorKind::UnexpectedEof => Self::UnexpectedEnd,
            ErrorKind::TimedOut => Self::TimedOut,
            ErrorKind::HostUnreachable => Self::HostUnreachable,
            ErrorKind::NetworkUnreachable => Self::NetworkUnreachable,
            ErrorKind::AddrInUse => Self::AddressInUse,
            ErrorKind::AddrNotAvailable => Self::NoSuchAddress,
            _ => Self::of_words(&error.to_string()),
        }
    }

    /// That of words which came from somewhere: a server's log, another host's agent.
    pub fn of_words(words: &str) -> Self {
        let said = words.split(" (os error").next().unwrap_or(words);
        let said = said.strip_prefix(RESOLVER).unwrap_or(said).trim_end_matches('.').to_ascii_lowercase();
        let known = SENTENCES.iter().find(|(sentence, _)| *sentence == said);
        known.map_or_else(|| Self::Other(words.to_owned()), |(_, cause)| cause.clone())
    }

    /// In a language, to stand behind a colon.
    pub fn words(&self, language: Language) -> String {
        match language {
            Language::En => self.english(),
            Language::Zh => self.chinese(),
        }
    }

    fn english(&self) -> String {
        let words = match self {
            Self::NotFound => "it is not there",
            Self::NotAllowed => "this user may not (permission denied)",
            Self::IsFolder => "it is a folder",
            Self::IsNoFolder => "it, or what should be a folder on the way to it, is no folder",
            Self::Exists => "there is something of that name already",
            Self::NoSpace => "no space is left on the disk",
            Self::ReadOnly => "the file system is read-only",
            Self::TooManyFiles => "too many files are open",
            Self::NoText => "it is no text in UTF-8",
            Self::Refused => "the connection is refused; nobody listens there",
            Self::TimedOut => "nothing came back in time",
            Self::HostUnreachable => "no way leads to the host",
            Self::NetworkUnreachable => "no way leads to that network",
            Self::Reset => "the other side broke the connection",
            Self::BrokenPipe => "the other side takes nothing more",
            Self::UnexpectedEnd => "the other side closed the connection before it was done",
            Self::AddressInUse => "something else listens there",
            Self::NoSuchAddress => "this host does not have that address",
            Self::UnknownName => "nobody knows the name",
            Self::NoNameServer => "no name server answers",
            Self::Other(said) => return format!("the system says “{said}”"),
        };
        words.to_owned()
    }

    fn chinese(&self) -> String {
        let words = match self {
            Self::NotFound => "文件或目录不存在",
            Self::NotAllowed => "当前用户没有权限",
            Self::IsFolder => "这是一个目录",
            Self::IsNoFolder => "它（或路径中的某一级）不是目录",
            Self::Exists => "同名文件已存在",
            Self::NoSpace => "磁盘空间不足",
            Self::ReadOnly => "文件系统为只读",
            Self::TooManyFiles => "打开的文件过多",
            Self::NoText => "内容不是 UTF-8 文本",
            Self::Refused => "连接被拒绝，该处没有程序在监听",
            Self::TimedOut => "超时，没有任何响应",
            Self::HostUnreachable => "没有通往该主机的路由",
            Self::NetworkUnreachable => "没有通往该网络的路由",
            Self::Reset => "连接被对方重置",
            Self::BrokenPipe => "对方已不再接收数据",
            Self::UnexpectedEnd => "对方提前关闭了连接",
            Self::AddressInUse => "该地址已被其他程序占用",
            Self::NoSuchAddress => "本机没有该地址",
            Self::UnknownName => "主机名未知",
            Self::NoNameServer => "域名服务器没有响应",
            Self::Other(said) => return format!("系统提示：“{said}”"),
        };
        words.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_is_known_by_its_number_and_by_its_words() {
        for number in [1, 2, 13, 17, 20, 21, 24, 28, 30, 32, 98, 99, 101, 104, 110, 111, 113] {
            let error = io::Error::from_raw_os_error(number);
            let cause = SystemCause::of(&error);
            assert!(!matches!(cause, SystemCause::Other(_)), "{error}");
            assert_eq!(cause, SystemCause::of_words(&error.to_string()), "{error}");
        }
        let resolver = "failed to lookup address information: Name or service not known";
        assert_eq!(SystemCause::of_words(resolver), SystemCause::UnknownName);
        assert_eq!(SystemCause::of(&io::Error::other(resolver)), SystemCause::UnknownName);
    }

    #[test]
    fn other_words_are_quoted() {
        let cause = SystemCause::of_words("Exec format error (os error 8)");
        assert_eq!(cause.words(Language::Zh), "系统提示：“Exec format error (os error 8)”");
        assert_eq!(cause.words(Language::En), "the system says “Exec format error (os error 8)”");
    }

    #[test]
    fn no_known_cause_has_english_words_in_chinese() {
        for (sentence, cause) in SENTENCES {
            let words = cause.words(Language::Zh).replace("UTF-8", "");
            assert!(!words.contains(|c: char| c.is_ascii_alphabetic()), "{sentence}: {words}");
        }
    }
}

//! Simplified Chinese.

use super::super::problem::{Clash, Expected, Fault, KeyFault, Lack, Named, PortTaken, Rule, TokenFault};
use super::super::syntax::Slip;
use super::super::yaml::MAX_BYTES;
use super::path_of;
use crate::config::TokenError;
use api::ServerUrlError;
use app::i18n::Language;
use std::path::Path;

/// What is wrong, and what to write instead.
#[expect(clippy::too_many_lines, reason = "one sentence for each fault; the compiler sees that none is missing")]
pub fn fault(fault: &Fault) -> String {
    match fault {
        Fault::Syntax { slip } => format!("YAML 语法错误：{}", self::slip(slip)),
        Fault::TooLarge { bytes } => format!("文件有 {bytes} 字节，隧道配置文件最多 {MAX_BYTES} 字节"),
        Fault::TooDeep => "嵌套层数过多，隧道配置文件没有这么深的结构".to_owned(),
        Fault::Anchor => "不支持锚点（`&`）和别名（`*`）；各主机的共同设置请写在顶层的 `ssh:` 下".to_owned(),
        Fault::Tag => "不支持标签（`!`）；以 `!` 开头的文本请加引号".to_owned(),
        Fault::SecondDocument => "此处开始了第二个文档；一个文件只能有一个，请删去 `---`".to_owned(),
        Fault::KeyIsNoWord => "键必须是一个词".to_owned(),
        Fault::Empty => "文件是空的；需要 `server:` 和 `workers:`，或 `forwards:`（见 docs/tunnels.md）".to_owned(),
        Fault::UnknownKey { table, key, nearest, known } => {
            let key = path_of(table, key);
            match nearest {
                Some(nearest) => format!("没有 `{key}` 这个键；是否应为 `{nearest}`？"),
                None => format!("没有 `{key}` 这个键；可用的有：{}", known.join("、")),
            }
        }
        Fault::NoSpace { key, value, is_wide: true, .. } => {
            format!("`{key}` 后面是全角冒号；请写成 `{key}: {value}`，即半角冒号加空格")
        }
        Fault::NoSpace { key, value, is_wide: false, .. } => {
            format!("`{key}` 的冒号后面缺少空格；请写成 `{key}: {value}`")
        }
        Fault::DottedKey { key, table, inner } => {
            format!("`{key}` 不是有效的键；请先写 `{table}:`，再在其下一行缩进写 `{inner}:`")
        }
        Fault::DuplicateKey { key, first } => format!("`{key}` 重复出现，第一次在第 {first} 行"),
        Fault::WrongType { key, expected } => {
            let key = if key.is_empty() { "整个文件".to_owned() } else { format!("`{key}` ") };
            format!("{key}应为{}", self::expected(*expected))
        }
        Fault::HostKeyUnknown { host } => {
            format!("已知主机文件中没有 {host} 的密钥；请用 `gpustack tunnel trust --config` 加本文件核对并信任")
        }
        Fault::KnownHosts { path, cause } => {
            format!("已知主机文件 {} 无法使用：{}", path.display(), cause.words(Language::Zh))
        }
        Fault::NoValue { key } => format!("`{key}` 没有值；请填写，或删去这一行"),
        Fault::BadValue { key, value, rule } => format!("`{key}` 的值为 `{value}`；{}", self::rule(rule)),
        Fault::Placeholder { key, value } => format!("`{key}` 的值 `{value}` 是占位符，请替换为实际值"),
        Fault::BadName { name, max, of } => {
            let hint = match of {
                Named::AgentByHost => "；这是主机名，请用 `id:` 另写一个",
                Named::Worker => "；工作节点自己的名称可在其下用 `name:` 填写",
                Named::Agent | Named::Here | Named::Bastion | Named::Forward => "",
            };
            format!("`{name}` 不能用作名称：最多 {max} 个字符，只能是字母、数字、`.`、`_` 和 `-`{hint}")
        }
        Fault::ReservedName { name, of } => {
            format!("`{name}` 在本文件中另有含义，请为该{}换一个名称", named(*of))
        }
        Fault::Missing { table, lack } => {
            let what = if table.is_empty() { "文件中".to_owned() } else { format!("`{table}` ") };
            format!("{what}缺少 `{}`：请写 {}", lack.key(), example(*lack))
        }
        Fault::Conflict { key, clash } => {
            format!("`{key}` 与 `{}` 不能同时使用：{}", clash.other(), self::clash(*clash))
        }
        Fault::NoEffect { key, needs } => {
            format!("没有 `{needs}` 时，`{key}` 不起作用：请在其旁边补上，或删去 `{key}`")
        }
        Fault::UnknownName { key, name, of, nearest } => {
            let what = match of {
                Named::Here => "没有这个工作节点（也可以写 bastion 或 server）",
                Named::Bastion => " `bastions:` 下没有这个堡垒机",
                Named::Worker => " `workers:` 下没有这个工作节点",
                Named::Agent | Named::AgentByHost | Named::Forward => "它并不存在",
            };
            format!("`{key}` 指定了 `{name}`，但{what}{}", did_you_mean(nearest.as_deref()))
        }
        Fault::NoSuchEnd { key, name, nearest } => format!(
            "`{key}` 的值为 `{name}`，但本文件中没有以此为名的堡垒机或工作节点；如果它是主机名，请写明登录用户：`用户@{name}`{}",
            did_you_mean(nearest.as_deref())
        ),
        Fault::Circle { names } => format!("路径成环：{}；请删去其中一个 `via`", names.join(" → ")),
        Fault::PassesTwice { end, hop } => format!("到 `{end}` 的路径两次经过 {hop}，请删去一处"),
        Fault::EndsHere { name } => format!("`{name}` 就是代理自己所在的主机，无需转发；请指定另一台"),
        Fault::SameWorkerName { name, first_line } => {
            format!("第 {first_line} 行的工作节点也叫 `{name}`；请写该节点启动时使用的名称")
        }
        Fault::PortTaken(taken) => {
            let PortTaken { forward, listen, host, other, other_line, remedy } = &**taken;
            let host = host.as_deref().map_or_else(|| "本机".to_owned(), |host| format!(" {host} "));
            let port = remedy.map_or_else(|| "端口".to_owned(), |key| format!(" `{key}:`"));
            format!("`{forward}` 要监听{host}的 {listen}，但 `{other}`（第 {other_line} 行）已在监听；请换一个{port}")
        }
        Fault::ForwardNameTaken { id, first } => format!(
            "第 {first} 行的内容已有名为 `{id}` 的转发；代理自己的转发名为 节点.server、节点.health、节点.health-here，请为这一条换一个名称"
        ),
        Fault::HealthCheckNeedsServer { worker } => format!(
            "`{worker}` 的健康检查要经过服务端主机的端口，代理必须能登录该主机：请在 `server:` 下写 `ssh: 用户@主机`，或写 `health_check: false`；本版本的工作节点不需要健康检查的回程"
        ),
        Fault::PortsDiffer { worker, worker_port, health_port } => format!(
            "`{worker}` 的 `worker_port: {worker_port}` 与 `health_port: {health_port}` 不同；服务端访问的就是工作节点启动时使用的端口，请写成相同，或只写一个"
        ),
        Fault::PortRemembered { worker, port, other, file } => {
            format!("`{worker}` 要用端口 {port}，但 {file} 中已为 `{other}` 保留；请换一个")
        }
        Fault::NoPortLeft { worker, file } => {
            format!("10150 到 65535 之间已没有端口可供 `{worker}` 使用；请从 {file} 中删去不再存在的工作节点")
        }
        Fault::Nothing => {
            "没有任何要转发的内容：请在 `workers:` 下添加工作节点，或在 `forwards:` 下添加转发".to_owned()
        }
        Fault::StateDirIsFile { path } => {
            format!("`state_dir` 为 {}，但它是一个文件；请写一个目录，代理会自行创建", path.display())
        }
        Fault::StateDirTooLong { bytes, max } => {
            format!("`state_dir` 的路径有 {bytes} 字节，其中的套接字无法使用这么长的路径：请改用最多 {max} 字节的路径")
        }
        Fault::Key { key, fault } => format!("`{key}`：{}", key_fault(fault)),
        Fault::NoIdentity { key } => format!(
            "`{key}` 没有可用于登录的密钥：请在 `ssh:` 下写 `identity: /密钥/路径`，或写 `agent: true` 使用 ssh-agent 中的密钥"
        ),
        Fault::NoAgent { key } => {
            format!("`{key}` 为 true，但未设置 SSH_AUTH_SOCK：请启动 ssh-agent，或写 `identity: /密钥/路径`")
        }
        Fault::TokenFile { key, path, fault } => format!("`{key}`：{}", token_fault(path, fault)),
    }
}

fn slip(slip: &Slip) -> String {
    match slip {
        Slip::Tab => "此处有制表符；YAML 只能用空格缩进".to_owned(),
        Slip::NoColon { line } => format!("`{line}` 缺少冒号；请写成 `键: 值`，下面是表时写成 `键:`"),
        Slip::NoSpace { key, value } => format!("`{key}` 的冒号后面缺少空格；请写成 `{key}: {value}`"),
        Slip::WideColon { key } => format!("`{key}` 后面是全角冒号；请改为半角冒号加空格"),
        Slip::ColonInValue => "该值中有冒号；请加引号，或另起一行".to_owned(),
        Slip::OpenQuote => "此处的引号在本行没有闭合，请补上另一个".to_owned(),
        Slip::BehindQuote => "闭合的引号后面还有内容；请把整个值放进引号".to_owned(),
        Slip::Escape => "双引号中的反斜杠构成了不存在的转义；请改用单引号".to_owned(),
        Slip::OpenBracket { bracket } => {
            format!("此处的 `{bracket}` 没有闭合；请在末尾补上 `{}`", if *bracket == '[' { ']' } else { '}' })
        }
        Slip::NoComma => "括号中的两项之间缺少逗号，应在此处之前".to_owned(),
        Slip::StrayBracket => "此处的括号没有与之配对的左括号；请删去，或给该值加引号".to_owned(),
        Slip::Indentation => "本行的缩进与同一个表的其他行不一致；同一个表的各行必须对齐".to_owned(),
        Slip::ListBehindKey => "用 `-` 写的列表应从键的下一行开始；写在同一行时用 [a, b]".to_owned(),
        Slip::NeedsQuotes { first } => format!("以 `{first}` 开头的值在 YAML 中另有含义；请加引号"),
        Slip::Other { said } => format!("解析器提示：“{said}”"),
    }
}

fn expected(expected: Expected) -> &'static str {
    match expected {
        Expected::Table => "由 `键: 值` 行组成的表",
        Expected::Common => {
            "由各主机的共同设置组成的表，例如 `user:`、`identity:`；某台主机自己的 `ssh: 用户@主机` 写在该主机的名称下"
        }
        Expected::OneValue => "单个值；含方括号的文本（如 IPv6 地址）请加引号",
    }
}

fn rule(rule: &Rule) -> String {
    let words = match rule {
        Rule::Switch => "请写 true 或 false",
        Rule::Account => "请写 用户@主机 或 用户@主机:端口",
        Rule::BareAccount => "请只写 用户@主机 或 用户@主机:端口，不要有其他内容",
        Rule::Brackets => "IPv6 地址请放在方括号中：用户@[fe80::1]:22",
        Rule::User => "用户必须是账户名，例如 tunnel",
        Rule::WhoLogsIn => "请写明登录用户：写 用户@主机，或在顶层的 `ssh:` 下写 `user:`",
        Rule::NoUrl => "请写 主机:端口，不带 http:// 和路径，例如 10.0.0.1:8090",
        Rule::Address => "请写 主机:端口，例如 10.0.0.1:8090，IPv6 写作 [fe80::1]:8090",
        Rule::NoWildcard => "无法连接该地址；请写 127.0.0.1 或主机的地址",
        Rule::NoStar => "请用 0.0.0.0 代替 `*`；这样网络中的所有主机都能访问",
        Rule::Port => "端口是 1 到 65535 之间的数字",
        Rule::PlainPath => "路径中不能有控制字符",
        Rule::NoHome => "未设置 HOME，请写完整路径",
        Rule::WholePath => "请写完整路径，以 / 或 ~/ 开头",
        Rule::KeepAlive => "请写 1s 到 1h 之间的时间，例如 10s",
        Rule::Unanswered => "请写 0 到 100 之间的数字",
        Rule::ServerUrl(error) => return server_url(error),
        Rule::WorkerName(max) => return format!("工作节点的名称最多 {max} 个字符"),
    };
    words.to_owned()
}

fn server_url(error: &ServerUrlError) -> String {
    match error {
        ServerUrlError::Empty => "服务端地址是空的；请写成 http://10.0.0.1:8090 的形式".to_owned(),
        ServerUrlError::Scheme(scheme) => format!("不支持 `{scheme}://`；只能使用 http:// 和 https://"),
        ServerUrlError::UserInfo => "地址中 `@` 之前有用户名或密码；请删去，令牌写在 `token_file` 中".to_owned(),
        ServerUrlError::Query => "地址中有 `?` 或 `#`，请删去".to_owned(),
        ServerUrlError::NoHost => "地址中没有主机；请写成 http://10.0.0.1:8090 的形式".to_owned(),
        ServerUrlError::Host(host) => {
            format!("`{host}` 不是主机名或地址；请写成 http://10.0.0.1:8090 或 http://[fe80::1]:8090 的形式")
        }
        ServerUrlError::Port(port) => format!("`{port}` 不是端口；端口是 1 到 65535 之间的数字"),
    }
}

fn named(of: Named) -> &'static str {
    match of {
        Named::Agent | Named::AgentByHost => "代理",
        Named::Here => "主机",
        Named::Bastion => "堡垒机",
        Named::Worker => "工作节点",
        Named::Forward => "转发",
    }
}

fn example(lack: Lack) -> &'static str {
    match lack {
        Lack::Server => "`server: {address: 10.0.0.1:8090}`",
        Lack::ReportServer => "`server: {address: 10.0.0.1:8090}`；不需要上报时写 `report: false`",
        Lack::WayToServer => "`ssh: 用户@主机`，或用 `via:` 写出途经的堡垒机",
        Lack::EndAtServer => "`server:` 下的 `ssh: 用户@主机`，因为有转发以它为终点",
        Lack::ServerAddress => "`address: 10.0.0.1:8090`，即服务端监听的地址",
        Lack::Login => "`ssh: 用户@主机`",
        Lack::End => "`ssh: 用户@主机`，或本文件中工作节点、堡垒机的名称",
        Lack::Target => "`target: 主机:端口`，即转发到哪里",
        Lack::Listen => "`local: 主机:端口`（监听本机端口），或 `remote: 主机:端口`（监听 SSH 服务器的端口）",
    }
}

fn clash(clash: Clash) -> &'static str {
    match clash {
        Clash::CertificateOfOneKey => {
            "一个证书只对应一个密钥：请只指定该密钥，或把各证书以 密钥名-cert.pub 放在密钥旁边"
        }
        Clash::UserTwice => "用户只需写一次",
        Clash::BothEnds => "一条转发只在一端监听；请分成两条",
        Clash::NamedEnd => "`ssh` 指向本文件中的条目，那里已经写明",
        Clash::NoForwardNeeded => "不经转发即可访问该地址；请删去端口，或在 `server:` 下写 `ssh:`",
    }
}

fn key_fault(fault: &KeyFault) -> String {
    match fault {
        KeyFault::PublicHalf { path, private } => {
            format!("{} 是公钥；请写私钥 {}", path.display(), private.display())
        }
        KeyFault::Encrypted { path } => {
            let path = path.display();
            format!(
                "{path} 中的密钥已加密，而运行时没有人输入口令；请用 `ssh-add {path}` 将其加载到 ssh-agent，并用 `agent: true` 代替 `identity`"
            )
        }
        KeyFault::Folder { path } => {
            let path = path.display();
            format!("{path} 是一个目录；请写密钥文件，例如 {path}/id_ed25519")
        }
        KeyFault::Unreadable { path, cause, owner } => {
            let owner = owner.map(|(owner, own)| {
                format!("；它属于用户 {owner}，而当前用户是 {own}：`chown {own} {}`", path.display())
            });
            format!("无法读取 {}：{}{}", path.display(), cause.words(Language::Zh), owner.unwrap_or_default())
        }
        KeyFault::Open { path, mode } => {
            let path = path.display();
            format!("{path} 可被其他用户访问（权限 {mode:o}）；请用 `chmod 600 {path}` 改为仅自己可读")
        }
        KeyFault::NoKey { path } => {
            let path = path.display();
            format!("{path} 中没有 OpenSSH 格式的私钥；旧格式的密钥可用 `ssh-keygen -p -f {path}` 转换")
        }
        KeyFault::NoCertificate { path } => format!("{} 中没有 OpenSSH 证书", path.display()),
        KeyFault::OtherKey { certificate, key } => {
            format!("{} 中的证书与 {} 中的密钥不对应", certificate.display(), key.display())
        }
    }
}

fn token_fault(path: &Path, fault: &TokenFault) -> String {
    let path = path.display();
    match fault {
        TokenFault::Unreadable { cause } => {
            format!("无法读取 {path}：{}；应填写的内容可在服务端用 `gpustack token` 查看", cause.words(Language::Zh))
        }
        TokenFault::Open { mode } => {
            format!("{path} 可被所有用户读取（权限 {mode:o}）；请用 `chmod 600 {path}` 改为仅自己可读")
        }
        TokenFault::Content(TokenError::Empty) => {
            format!("{path} 是空的；请填入服务端的令牌（在服务端用 `gpustack token` 查看）")
        }
        TokenFault::Content(TokenError::Several) => format!("{path} 中有多个令牌，或令牌中有空白；请只保留一个"),
        TokenFault::Content(TokenError::Character) => {
            format!("{path} 中有令牌不会有的字符；令牌只含字母、数字和 ASCII 标点")
        }
    }
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("；是否应为 `{nearest}`？")).unwrap_or_default()
}

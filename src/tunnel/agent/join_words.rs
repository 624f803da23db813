//! Why an agent has not joined its server, in Chinese and in words of the agent's file; English is the errors' own.

use crate::worker::JoinError;
use app::i18n::Language;
use app::i18n::system_words::SystemCause;

/// In Chinese.
pub fn chinese(error: &JoinError) -> String {
    match error {
        JoinError::NotResolved { host } => {
            format!("服务端的主机名 {host} 无法解析；请检查 `server_url` 的拼写和本机的 DNS")
        }
        JoinError::Refused { address } => {
            format!("{address} 上没有程序在监听：服务端未运行，或通往它的隧道不通；请启动服务端或更正 `server_url`")
        }
        JoinError::NoRoute { address } => {
            format!("本机没有通往 {address} 的路由；请检查本机网络，或经隧道访问服务端")
        }
        JoinError::TimedOut { address, timeout_s } => {
            format!("{address} 在 {timeout_s} 秒内没有应答；请检查服务端是否在运行，以及防火墙是否丢弃了数据包")
        }
        JoinError::Closed { address } => {
            format!("{address} 没有应答就关闭了连接，通常是隧道的另一端不通；请检查隧道和服务端")
        }
        JoinError::Network { address, detail } => {
            format!("无法与 {address} 通信（{}）；请检查本机与服务端之间的网络", said(detail))
        }
        JoinError::UnknownAuthority { address } => {
            format!("{address} 的证书由本机不认识的机构签发；请将其 CA 证书加入本机的受信任证书")
        }
        JoinError::OtherCertificate { address, expected, presented } => {
            format!("{address} 的证书指纹为 {presented}，而预期为 {expected}；请查明证书是否更换过")
        }
        JoinError::CertificateName { address, names } => {
            format!("{address} 的证书只适用于 {names}；请在 `server_url` 中使用这样的名称，或为该名称签发证书")
        }
        JoinError::TlsNotSpoken { address } => {
            format!("{address} 不使用 TLS；请在 `server_url` 中把 https:// 改为 http://")
        }
        JoinError::Tls { address, detail } => {
            format!("与 {address} 的 TLS 连接失败（{}）；请检查服务端的证书和 TLS 设置", said(detail))
        }
        JoinError::HttpNotSpoken { address } => {
            format!("{address} 不使用明文 HTTP；如果它是服务端，请在 `server_url` 中写 https://，否则请更正端口")
        }
        JoinError::OtherService { url, status, .. } => {
            format!("在 {url} 应答的是其他服务（HTTP 状态 {status}）；请更正 `server_url` 或隧道的目标")
        }
        JoinError::Redirected { url, location } => {
            format!("{url} 重定向到 {location}；请在 `server_url` 中写服务端自己的地址")
        }
        JoinError::Gateway { address, status } => {
            format!("{address} 处的代理服务器返回 {status}，它无法访问服务端；请检查服务端是否在运行，以及代理服务器指向何处")
        }
        JoinError::UpgradeTakenAway { address } => {
            format!("本机与 {address} 之间的代理服务器去掉了协议升级；请让它转发 Upgrade 和 Connection 请求头")
        }
        JoinError::NoToken => {
            "没有令牌，也没有加入过任何服务端：请用 `token_file` 指定令牌文件（在服务端主机上用 `gpustack token` 查看令牌）"
                .to_owned()
        }
        JoinError::ServerKeyChanged { address, file } => format!(
            "{address} 处的服务端的密钥与之前加入的不同；如果它重新安装过，请用 `token_file` 指定其令牌或删除 {}，否则说明中间有人冒充",
            file.display()
        ),
        JoinError::ServerNotProven { address } => {
            format!("{address} 处的应答者不知道令牌，不是该服务端；请检查 `server_url` 和 `token_file`，否则说明中间有人冒充")
        }
        JoinError::WrongToken { address } => {
            format!("{address} 处的服务端拒绝了令牌；请在 `token_file` 中填写服务端主机上 `gpustack token` 显示的令牌")
        }
        JoinError::WorkerUnknown { address } => {
            format!("{address} 处的服务端不认识该代理：它已在那里被删除，或属于另一个服务端；请用 `token_file` 指定令牌以重新加入")
        }
        JoinError::NameTaken { message }
        | JoinError::IdentityDuplicated { message }
        | JoinError::Rejected { message } => format!("服务端拒绝了该代理（{}）", said(message)),
        JoinError::ReplacementNeeded { message } => format!("在名称空出之前，服务端拒绝该代理（{}）", said(message)),
        JoinError::TakenOver => {
            "另一个使用相同身份的进程取代了该代理；其状态目录或副本是否正在另一台主机上使用？".to_owned()
        }
        JoinError::Deleted => "该代理已在服务端被删除".to_owned(),
        JoinError::ProtocolUnsupported { message } => {
            format!("服务端不支持该代理的协议（{}）；请将两者升级到同一版本", said(message))
        }
        JoinError::AnswerNotUnderstood { detail } => {
            format!("无法理解服务端的应答（{}）；请将两者升级到同一版本", said(detail))
        }
        JoinError::Unavailable { .. } => "服务端繁忙或尚未就绪；代理会自动重试".to_owned(),
        JoinError::ServerStopping { retry_after } => {
            format!("服务端正在停止；{} 秒后重新接入", retry_after.as_secs())
        }
        JoinError::Silent => "服务端在链路上没有任何响应：它已停滞，或中间的网络丢弃了数据包".to_owned(),
        JoinError::Broken { detail } => format!("与服务端的链路中断（{}）", said(detail)),
    }
}

fn said(words: &str) -> String {
    SystemCause::of_words(words).words(Language::Zh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_spoken_of_and_no_flag_and_other_words_are_set_off() {
        let address = || "10.0.0.1:8090".to_owned();
        let refused = chinese(&JoinError::WrongToken { address: address() });
        assert!(refused.contains("`token_file`") && !refused.contains("--"), "{refused}");
        let network = |detail: &str| chinese(&JoinError::Network { address: address(), detail: detail.to_owned() });
        assert!(network("Connection reset by peer (os error 104)").contains("（连接被对方重置）"));
        assert!(network("odd").contains("（系统提示：“odd”）"));
    }
}

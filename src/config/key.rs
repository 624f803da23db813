//! The names of all settings: one word names the flag, the variable and the key of the configuration file.

/// The part of the configuration file about encryption.
pub const SECURITY: &str = "security";

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Verbose log.
    Debug,
    /// Where the state is kept.
    DataDir,
    /// The join token.
    Token,
    /// Address to listen on.
    Host,
    /// Port to listen on.
    Port,
    /// The admin's first password.
    BootstrapPassword,
    /// No worker in the server's process.
    DisableWorker,
    /// Private key for TLS.
    SslKeyfile,
    /// Certificate for TLS.
    SslCertfile,
    /// Where the database is.
    DatabaseUrl,
    /// Seconds without a heartbeat after which a worker is Not Ready.
    WorkerOfflineTimeout,
    /// The server to join.
    ServerUrl,
    /// The worker's address.
    WorkerIp,
    /// The interface whose address is the worker's.
    WorkerIfname,
    /// The worker's port.
    WorkerPort,
    /// The worker's name.
    WorkerName,
    /// Authorities that the server's certificate may come from.
    CaFile,
    /// The certificate that the server shows.
    ServerFingerprint,
    /// Kept free for the system.
    SystemReserved,
    /// How links are encrypted.
    DataEncryption,
    /// How often links take new keys.
    KeyRotation,
}

impl Key {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::Debug,
        Self::DataDir,
        Self::Token,
        Self::Host,
        Self::Port,
        Self::BootstrapPassword,
        Self::DisableWorker,
        Self::SslKeyfile,
        Self::SslCertfile,
        Self::DatabaseUrl,
        Self::WorkerOfflineTimeout,
        Self::ServerUrl,
        Self::WorkerIp,
        Self::WorkerIfname,
        Self::WorkerPort,
        Self::WorkerName,
        Self::CaFile,
        Self::ServerFingerprint,
        Self::SystemReserved,
        Self::DataEncryption,
        Self::KeyRotation,
    ];

    /// Those that the configuration file has under `security`.
    pub const SECURITY: [Self; 2] = [Self::DataEncryption, Self::KeyRotation];

    /// As the configuration file spells it, there or in the part that it belongs to.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::DataDir => "data_dir",
            Self::Token => "token",
            Self::Host => "host",
            Self::Port => "port",
            Self::BootstrapPassword => "bootstrap_password",
            Self::DisableWorker => "disable_worker",
            Self::SslKeyfile => "ssl_keyfile",
            Self::SslCertfile => "ssl_certfile",
            Self::DatabaseUrl => "database_url",
            Self::WorkerOfflineTimeout => "worker_offline_timeout",
            Self::ServerUrl => "server_url",
            Self::WorkerIp => "worker_ip",
            Self::WorkerIfname => "worker_ifname",
            Self::WorkerPort => "worker_port",
            Self::WorkerName => "worker_name",
            Self::CaFile => "ca_file",
            Self::ServerFingerprint => "server_fingerprint",
            Self::SystemReserved => "system_reserved",
            Self::DataEncryption => "data_encryption",
            Self::KeyRotation => "key_rotation",
        }
    }

    /// Where the configuration file has it.
    pub fn file_path(self) -> String {
        if Self::SECURITY.contains(&self) { format!("{SECURITY}.{}", self.name()) } else { self.name().to_owned() }
    }

    /// As the command line spells it.
    pub fn flag(self) -> String {
        format!("--{}", self.name().replace('_', "-"))
    }

    /// As the environment spells it.
    pub fn variable(self) -> String {
        format!("GPUSTACK_{}", self.name().to_ascii_uppercase())
    }

    /// The setting that a configuration file means by `name`.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name && !Self::SECURITY.contains(key))
    }

    /// The setting that a configuration file means by `name` under `security`.
    pub fn of_security_name(name: &str) -> Option<Self> {
        Self::SECURITY.into_iter().find(|key| key.name() == name)
    }

    /// Whether the value must never be shown.
    pub fn is_secret(self) -> bool {
        matches!(self, Self::Token | Self::BootstrapPassword)
    }
}

/// Keys that GPUStack 0.7 reads and that mean nothing here yet: an existing file keeps working. From its
/// documentation of `gpustack start`.
pub const WITHOUT_EFFECT: [&str; 56] = [
    "allow_credentials",
    "allow_headers",
    "allow_methods",
    "allow_origins",
    "bin_dir",
    "cache_dir",
    "disable_metrics",
    "disable_openapi_docs",
    "disable_rpc_servers",
    "disable_update_check",
    "enable_cors",
    "enable_hf_transfer",
    "enable_hf_xet",
    "enable_ray",
    "external_auth_avatar_url",
    "external_auth_full_name",
    "external_auth_name",
    "external_auth_type",
    "force_auth_localhost",
    "huggingface_token",
    "log_dir",
    "metrics_port",
    "model_catalog_file",
    "oidc_client_id",
    "oidc_client_secret",
    "oidc_issuer",
    "oidc_redirect_uri",
    "ollama_library_base_url",
    "pipx_path",
    "ray_args",
    "ray_client_server_port",
    "ray_dashboard_agent_grpc_port",
    "ray_dashboard_agent_listen_port",
    "ray_dashboard_port",
    "ray_metrics_export_port",
    "ray_node_manager_port",
    "ray_object_manager_port",
    "ray_port",
    "ray_runtime_env_agent_port",
    "ray_worker_port_range",
    "rpc_server_args",
    "rpc_server_port_range",
    "saml_idp_entity_id",
    "saml_idp_logout_url",
    "saml_idp_server_url",
    "saml_idp_x509_cert",
    "saml_security",
    "saml_sp_acs_url",
    "saml_sp_attribute_prefix",
    "saml_sp_entity_id",
    "saml_sp_private_key",
    "saml_sp_slo_url",
    "saml_sp_x509_cert",
    "service_port_range",
    "tools_download_base_url",
    "update_check_url",
];

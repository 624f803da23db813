//! What the agent tells of itself, to its server and to `gpustack tunnel status`.

use super::Refusal;
use super::board::Board;
use super::certificates::{self, KeyFile};
use super::reporter::Joined;
use crate::tunnel::plan::Plan;
use api::TunnelReport;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What the agent tells. Cloning it clones a handle.
#[derive(Clone)]
pub struct View {
    board: Board,
    told: Arc<Mutex<Told>>,
    joined: watch::Receiver<Joined>,
}

struct Told {
    plan: Arc<Plan>,
    refused_config: Option<Refusal>,
}

/// What `gpustack tunnel status` is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The agent's name.
    pub id: String,
    /// Its program's version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// The server that it reports to.
    pub server_url: Option<String>,
    /// Whether it has joined that server.
    pub joined: Joined,
    /// Its forwards and certificates.
    #[serde(flatten)]
    pub report: TunnelReport,
}

impl View {
    /// Of this plan.
    pub fn new(board: Board, plan: Arc<Plan>, joined: watch::Receiver<Joined>) -> Self {
        Self { board, told: Arc::new(Mutex::new(Told { plan, refused_config: None })), joined }
    }

    /// Another plan is in force.
    pub fn set_plan(&self, plan: Arc<Plan>) {
        *self.told() = Told { plan, refused_config: None };
        self.touch();
    }

    /// The file was changed, and what it says now is not taken over.
    pub fn refuse_config(&self, why: Refusal) {
        self.told().refused_config = Some(why);
        self.touch();
    }

    /// The plan that is in force.
    pub fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.told().plan)
    }

    /// Everything, now.
    pub fn report(&self) -> TunnelReport {
        let (plan, refused) = {
            let told = self.told();
            (Arc::clone(&told.plan), told.refused_config.clone())
        };
        TunnelReport {
            place: plan.place.clone(),
            forwards: self.board.report(&plan.forwards),
            certificates: certificates::reports(&certificates::key_files(&plan)),
            refused_config: refused.as_ref().map(|why| why.english.clone()),
            refused_config_zh: refused.map(|why| why.chinese),
        }
    }

    /// Everything, with what only this host is to know.
    pub fn status(&self) -> Status {
        let plan = self.plan();
        Status {
            id: plan.id.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            server_url: plan.reporting.as_ref().map(|reporting| reporting.server_url.clone()),
            joined: self.joined.borrow().clone(),
            report: self.report(),
        }
    }

    /// The agent's key files.
    pub fn key_files(&self) -> Vec<KeyFile> {
        certificates::key_files(&self.plan())
    }

    /// Changes count as they come.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.board.changes()
    }

    /// Something that is told has changed.
    pub fn touch(&self) {
        self.board.touch();
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        // each change is one assignment, so a panic elsewhere leaves nothing half done here
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

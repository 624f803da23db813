//! Real servers and workers on hosts with networks of their own, and all that can go wrong in between.
//!
//! Each scenario runs in a process with a network of its own, which also holds all processes of the scenario: they end
//! with it. This takes root, or a system that lets its users have namespaces, and `/dev/net/tun`. OpenSSH and nginx take
//! root in any case.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a scenario that cannot go on fails; a field of a row that is absent is null"
)]

mod addresses;
mod cables;
mod certificates;
mod clocks;
mod field;
mod identity;
mod middlemen;
mod restarts;
mod tunnels;

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;

/// Scenarios wait most of the time.
const AT_A_TIME: usize = 8;

struct Scenario {
    name: &'static str,
    run: fn(),
}

macro_rules! scenarios {
    ($($module:ident: $($name:ident),+;)+) => {
        [$($(Scenario { name: stringify!($name), run: $module::$name }),+),+]
    };
}

const SCENARIOS: [Scenario; 32] = scenarios! {
    addresses:
        a_worker_with_many_interfaces_reports_the_one_that_leads_to_the_server,
        a_worker_behind_a_firewall_is_ready_through_its_link;
    cables:
        a_worker_whose_cable_is_pulled_is_not_ready_until_it_is_plugged_in_again,
        a_worker_cut_off_without_a_word_is_unreachable_until_it_is_heard_again,
        a_worker_behind_a_cable_that_loses_packets_stays_ready,
        a_worker_far_away_is_ready_and_its_distance_is_known,
        a_worker_behind_a_slow_line_stays_ready,
        a_link_that_a_router_forgot_is_replaced_by_itself;
    restarts:
        a_worker_that_is_killed_is_shown_as_gone_and_comes_back_as_itself,
        workers_that_are_killed_again_and_again_leave_nothing_open_on_the_server,
        a_worker_whose_host_vanished_comes_back_although_its_old_link_still_stands,
        a_server_that_is_killed_knows_its_workers_again;
    identity:
        a_copied_worker_is_refused_and_told_of_while_the_first_one_lives;
    clocks:
        a_worker_whose_clock_is_eight_hours_ahead_is_ready_and_told_of,
        a_worker_whose_clock_is_eight_hours_behind_is_ready_and_told_of;
    middlemen:
        a_link_through_a_bastion_comes_back_when_the_bastion_was_restarted,
        a_link_through_nginx_outlives_a_reload_and_comes_back_after_a_restart;
    certificates:
        a_certificate_is_renewed_under_an_open_session_and_used_by_the_next_one,
        an_expired_certificate_is_named_and_a_new_one_lets_the_tunnel_in,
        a_revoked_certificate_and_one_for_another_user_are_refused,
        a_certificate_that_is_not_valid_yet_is_blamed_on_the_clock;
    tunnels:
        the_reports_own_ssh_commands_bring_a_worker_in,
        a_tunnel_agent_alone_brings_two_workers_in_both_ways,
        a_tunnel_outlives_a_short_cut_and_comes_back_after_long_ones,
        a_stale_listener_of_a_killed_agent_is_recognised_and_waited_out,
        a_tunnel_comes_back_when_sshd_was_restarted,
        refusals_of_sshd_are_told_apart,
        a_port_that_somebody_else_has_is_named_until_it_is_free,
        an_agent_that_cannot_report_keeps_its_forwards,
        thirty_tunnels_at_once_all_come_about,
        a_worker_that_moved_is_found_by_a_changed_file_and_the_others_go_on,
        the_server_names_the_tunnel_that_a_lost_worker_depends_on;
};

fn main() -> ExitCode {
    if netlab::is_inside() {
        let name = std::env::args().nth(1).unwrap();
        let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap();
        (scenario.run)();
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = arguments.test_threads.or(Some(AT_A_TIME));
    let trials = SCENARIOS.iter().map(|scenario| Trial::test(scenario.name, || run_inside(scenario.name))).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run_inside(name: &str) -> Result<(), Failed> {
    let output = netlab::start_inside([name])?
        .output()
        .map_err(|error| format!("`setpriv`, of util-linux, does not start: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Err(format!(
        "failed on hosts of its own, or this system does not allow such hosts (see tests/network_faults):\n{said}"
    )
    .into())
}

use super::*;
use crate::tunnel::plan::tests::plan;
use tokio::time::Instant;

const FILE: &str = "
server: {address: 10.0.0.1:8090, ssh: root@10.0.0.1}
workers: {npu-1: {ssh: root@npu-1}}
";

fn board() -> Board {
    let folder = tempfile::tempdir().unwrap();
    Board::open(&DataDir::open(folder.path()).unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_server_is_dialled_once_the_way_to_it_was_tried() {
    let (board, plan) = (board(), plan(FILE));
    let way = plan.forwards[0].id.clone();
    assert_eq!(way.as_str(), "server");
    for state in [ForwardState::Up, ForwardState::Down] {
        board.note(&way, ForwardState::Starting, None);
        let begun = Instant::now();
        let tried = async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            board.note(&way, state, None);
        };
        tokio::join!(first_way(&board, &plan), tried);
        assert_eq!(begun.elapsed(), Duration::from_secs(3), "{state:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_way_that_takes_for_ever_and_a_server_that_needs_none_are_not_waited_for() {
    let begun = Instant::now();
    first_way(&board(), &plan(FILE)).await;
    assert_eq!(begun.elapsed(), FIRST_WAY_DEADLINE);
    first_way(&board(), &plan(&format!("server_url: http://10.0.0.9\n{FILE}"))).await;
    assert_eq!(begun.elapsed(), FIRST_WAY_DEADLINE);
}

#[test]
fn a_long_refusal_is_cut_between_lines() {
    let text = (1..=2_000).map(|line| format!("tunnels.yaml:{line}:1: 错误")).collect::<Vec<_>>().join("\n");
    let Refusal { english, chinese } = Refusal::new(|_| text.clone());
    assert!(english.len() <= REFUSAL_MAX_BYTES + 8 && english.ends_with("错误\n…"), "{}", english.len());
    assert_eq!(english, chinese);
    assert_eq!(Refusal::new(|_| "short".to_owned()).english, "short");
}

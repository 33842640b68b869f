//! What is wrong with the files themselves, and what the command says.

use std::process::Command;

use crate::world::{Event, World};
use tidegate_checker::Run;

#[test]
fn a_wrong_line_is_named_by_file_and_number() {
    let mut world = World::new();
    world.add(Event::new("plain", 20_000));
    let directory = world.write();
    let path = directory.join("receiver.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    // Cut off in the middle of its last line: that is ignored.
    std::fs::write(&path, format!("{text}{{\"kind\":\"requ")).unwrap();
    assert!(Run::load(&directory).is_ok());
    std::fs::write(&path, format!("{text}{{\"kind\":\"requ\n{text}")).unwrap();
    let error = Run::load(&directory).err().unwrap().to_string();
    assert!(error.contains("receiver.jsonl line 3: "), "{error}");
    std::fs::write(&path, text.replace("\"answered\"", "\"perhaps\"")).unwrap();
    let error = Run::load(&directory).err().unwrap().to_string();
    assert!(error.contains("receiver.jsonl line 2: unknown variant `perhaps`"), "{error}");
    std::fs::remove_file(&path).unwrap();
    let error = Run::load(&directory).err().unwrap().to_string();
    assert!(error.contains("receiver.jsonl: every run has this file"), "{error}");
    std::fs::remove_dir_all(directory).unwrap();
}

fn checker(world: &World, arguments: &[&str]) -> (Option<i32>, String) {
    let directory = world.write();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-checker"));
    let output = command.arg(&directory).args(arguments).output().unwrap();
    std::fs::remove_dir_all(directory).unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code(), text)
}

#[test]
fn the_command_tells_by_its_exit_code_and_its_table() {
    let mut world = World::new();
    let event = world.add(Event::new("plain", 20_000));
    let (code, text) = checker(&world, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("nothing to judge"), "{text}");
    world.repeat(event, 1, 1_000);
    let (code, text) = checker(&world, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("evt_1 (dlv_1, attempt 1) at plain, 1.006000 s, came again"), "{text}");
    assert_eq!(checker(&world, &["--only", "I4,i5"]).0, Some(0));
    let (code, text) = checker(&world, &["--only", "I3", "--json"]);
    let verdicts: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, verdicts[0]["violated"].as_u64()), (Some(1), Some(1)), "{text}");
    assert_eq!(checker(&world, &["--only", "I99"]).0, Some(2));
    world.world = serde_json::json!([]);
    assert_eq!(checker(&world, &[]).0, Some(2));
}

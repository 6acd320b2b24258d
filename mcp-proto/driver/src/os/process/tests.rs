use super::*;
use crate::ending::Signal;
use mcp_proto::exchange::{ExitStatus, Group, Program};
use mcp_proto::process::Stderr;
use std::io::Read;

fn shell(script: &str) -> SpawnedProgram {
    ChildProcess::spawn(&Program::new("sh").args(["-c", script]), &Stderr::Discard).expect("it starts")
}

#[test]
fn exit_is_known_before_the_program_is_reaped() {
    let spawned = shell("exit 7");
    assert_eq!(spawned.process.wait_exited(), ExitStatus::exited(7));
    assert_eq!(spawned.process.try_exited(), Some(ExitStatus::exited(7)), "it is not reaped");
    spawned.process.signal(Signal::KillGroup);
    assert_eq!(spawned.process.try_exited(), Some(ExitStatus::default()), "it is reaped");
    spawned.process.signal(Signal::Kill);
}

#[test]
fn signals_reach_the_group() {
    for (signal, number) in [(Signal::Terminate, 15), (Signal::Kill, 9)] {
        // The child of the shell holds the output open.
        let mut spawned = shell("sleep 60 & echo started; wait");
        let mut started = [0; 8];
        spawned.stdout.read_exact(&mut started).expect("it runs");
        assert_eq!(spawned.process.try_exited(), None);
        spawned.process.signal(signal);
        assert_eq!(spawned.process.wait_exited(), ExitStatus::killed(number));
        assert_eq!(spawned.stdout.read(&mut started).expect("the end"), 0);
    }
}

#[test]
fn rest_of_the_group_ends_with_the_program() {
    let mut spawned = shell("sleep 60 & exit 0");
    assert_eq!(spawned.process.wait_exited(), ExitStatus::exited(0));
    spawned.process.signal(Signal::KillGroup);
    assert_eq!(spawned.stdout.read(&mut [0; 8]).expect("the end"), 0);
}

#[test]
fn descendants_outlive_a_program_without_a_group() {
    let program = Program::new("sh").args(["-c", "(echo one; exec sleep 60) & wait"]).group(Group::Inherit);
    let mut spawned = ChildProcess::spawn(&program, &Stderr::Discard).expect("it starts");
    spawned.stdout.read_exact(&mut [0; 4]).expect("it runs");
    spawned.process.signal(Signal::Kill);
    assert_eq!(spawned.process.wait_exited(), ExitStatus::killed(9));
    // The descendant ends once its output is closed.
    drop(spawned);
}

#[test]
fn dropped_process_is_killed_with_its_group() {
    let SpawnedProgram { process, mut stdout, .. } = shell("sleep 60 & echo started; wait");
    stdout.read_exact(&mut [0; 8]).expect("it runs");
    drop(process);
    assert_eq!(stdout.read(&mut [0; 8]).expect("the end"), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn descriptor_is_readable_after_the_exit() {
    use rustix::event::{PollFd, PollFlags, poll};
    let spawned = shell("exec sleep 60");
    let descriptor = spawned.process.exit_descriptor().expect("this system has them");
    let ready = |limit| poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], limit).expect("polled");
    assert_eq!(ready(Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })), 0);
    spawned.process.signal(Signal::Kill);
    assert_eq!(ready(None), 1);
}

//! Tests of the measurements of costs: their rows, and what they read from other programs.

use mcp_tests::cost::anchors::{self, report};
use mcp_tests::cost::codec::{contests, message};
use mcp_tests::cost::https::{cells, heading};
use mcp_tests::cost::programs::numbers;
use mcp_tests::cost::syscalls::total;
use mcp_tests::cost::{Goal, Row};

#[test]
fn a_row_is_one_line_of_json() {
    let row = Row::new("calls", 14.170_49, Goal::AtMost(15.0));
    assert_eq!(row.to_string(), r#"{"row":"calls","value":14.17,"goal":"<= 15"}"#);
    assert_eq!(Row::new("bytes", 123_456.0, None).value, 123_456.0);
    assert_eq!(Row::new("part", 0.012_345, Goal::Below(1.0)).value, 0.012_35);
    assert_eq!(Row::new("none", 0.0, None).value, 0.0);
}

#[test]
fn a_line_has_a_row_for_each_number() {
    let rows = numbers("call over stdio, client           14.17 allocations     2468 bytes");
    assert_eq!(rows[0], Row::new("call over stdio, client, allocations", 14.17, Goal::AtMost(15.0)));
    assert_eq!(rows[1], Row::new("call over stdio, client, bytes", 2468.0, None));
    assert_eq!(rows.len(), 2);
}

#[test]
fn all_readers_find_all_messages() {
    for contest in contests() {
        assert!(contest.name.contains("event") || contest.messages == 1);
        for reader in &contest.readers {
            assert_eq!((reader.read)(&contest), contest.messages, "{}: {}", contest.name, reader.name);
        }
    }
    assert_eq!(message(343).0.len(), 343);
}

#[test]
fn a_report_is_read_from_what_a_client_prints() {
    let text = "x\nREPORT ops=50 secs=0.5 p50_us=1 p99_us=2 client_cpu_us=3 server_cpu_us=4 client_rss_kb=5\n";
    let report = report(text).expect("it is one");
    assert_eq!((report.rate, report.p50, report.p99, report.both()), (100.0, 1.0, 2.0, 7.0));
    assert!(anchors::report("REPORT ops=1").is_none());
}

#[test]
fn a_line_has_the_medians_and_their_ratios() {
    let of = |rate: f64| {
        let client = 2.0 * rate;
        let times = format!("p50_us=1 p99_us=1 client_cpu_us={client} server_cpu_us=10");
        report(&format!("REPORT ops={rate} secs=1 {times}")).expect("it is one")
    };
    let line = cells(&[of(30.0), of(10.0), of(20.0)], &[of(60.0), of(10.0), of(10.0)]);
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["20.0", "1.00", "40.0", "1.00", "10.0", "1.00"]);
    assert_eq!(line.len(), heading().len() - 36);
}

#[test]
fn the_total_of_a_count_is_in_its_last_line() {
    let counted = "\
        % time     seconds  usecs/call     calls    errors syscall\n\
         53.41    0.222013         433       512       118 futex\n\
        100.00    0.415666          44      9263      1592 total\n";
    assert_eq!(total(counted), Some(9263.0));
    assert_eq!(total("100.00    0.4          44      17           total"), Some(17.0));
    assert_eq!(total(""), None);
}

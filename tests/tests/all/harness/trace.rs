//! Tests of the coverage of requirements: the lists, the marks and the report.

use mcp_tests::sources::Source;
use mcp_tests::trace::Trace;

const IDS: &str =
    "# head\nRPC-B-001\tMUST\tone\nRPC-B-002\tSHOULD\ttwo\nB-044\tROW\tthree\nRPC-B-003\t(must not)\tfour\n";

const AREAS: &str = "RPC\t5\nLOG\t2\n";

fn trace(waived: &str, code: &str) -> Trace {
    Trace::new(IDS, waived, AREAS, &[Source::new("tests/tests/a.rs", code)])
}

#[test]
fn requirements_outside_of_the_list_are_counted_by_area() {
    let report = trace("", "").report();
    assert!(report.contains("not in the list: 4 of 7 requirements (RPC 2, LOG 2)"), "{report}");
}

#[test]
fn what_binds_is_open_until_marked_or_waived() {
    let open = |trace: &Trace| trace.uncovered().map(|wanted| wanted.id.clone()).collect::<Vec<_>>();
    assert_eq!(open(&trace("", "")), ["RPC-B-001", "B-044", "RPC-B-003"]);
    let some = trace("RPC-B-003\tlater\ttasks: not yet\n", "// covers: RPC-B-001,\n// B-044\n#[test]\nfn a() {}");
    assert_eq!(open(&some), [""; 0]);
    assert_eq!(some.defects, [""; 0]);
    assert!(some.report().contains("waived: 1 of 3 MUSTs (33.3 %)"), "{}", some.report());
}

#[test]
fn unknown_ids_and_bad_waivers_are_defects() {
    let bad = trace(
        "RPC-B-001\tlater\tsoon\nRPC-B-009\thost\twho\nB-044\tnever\twhy\n",
        "// covers: RPC-B-999, RPC-1, B-045",
    );
    assert_eq!(bad.defects.len(), 5, "{:?}", bad.defects);
    assert_eq!(bad.outside(), 1);
}

#[test]
fn mark_names_a_row_or_a_waived_one() {
    let there = trace("", "// covers: RPC-B-002, B-001, B-292, R-01, R-34, X-74, S0-65, S2-45, S3-50");
    assert_eq!(there.defects, [""; 0]);
    assert_eq!(there.outside(), 8);
    for id in
        ["RPC-B-004", "HTTP-C-014", "RB-S-001", "S1-06", "B-000", "B-293", "R-35", "X-00", "X-75", "S3-51", "Y-01"]
    {
        assert_eq!(trace("", &format!("// covers: {id}")).defects.len(), 1, "{id}");
    }
}

#[test]
fn mark_beside_a_waiver_is_reported() {
    let both = trace("B-044\thost\twho\n", "// covers: B-044");
    assert_eq!(both.both().collect::<Vec<_>>(), ["B-044"]);
}

#[test]
fn a_mark_in_shipped_code_is_a_defect() {
    let source = Source::new("mcp-proto/src/a.rs", "// covers: B-044\nfn a() {}\n");
    assert_eq!(Trace::new(IDS, "", "", &[source]).defects.len(), 1);
}

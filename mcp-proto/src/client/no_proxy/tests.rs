//! The entries of `NO_PROXY`, and what each matches.

use super::*;
use alloc::format;

// covers: PROXY-C-008
#[test]
fn entries_match_by_the_conventions() {
    for (list, inside, outside) in [
        ("*", &["a.test", "192.0.2.1", "2001:db8::1"][..], &[][..]),
        ("a.test", &["a.test", "A.TEST", "b.a.test", "c.b.a.test", "a.test."], &["ba.test", "a.test.b", "test"]),
        (".a.test", &["a.test", "b.a.test"], &["ba.test", "test"]),
        ("*.a.test", &["a.test", "b.a.test"], &["ba.test"]),
        ("A.Test.", &["a.test", "b.a.test"], &["ba.test"]),
        ("a.test,b.test", &["a.test", "b.test"], &["c.test"]),
        (" a.test ,, b.test\t", &["a.test", "b.test"], &["c.test"]),
        ("192.0.2.1", &["192.0.2.1", "::ffff:192.0.2.1"], &["192.0.2.10", "1.192.0.2.1", "a.192.0.2.1"]),
        ("2001:db8::1", &["2001:db8::1", "2001:DB8:0:0::1"], &["2001:db8::10", "::1"]),
        ("[2001:db8::1]", &["2001:db8::1"], &["2001:db8::2"]),
        ("10.0.0.0/8", &["10.0.0.1", "10.255.0.9", "::ffff:10.1.1.1"], &["11.0.0.1", "a.test", "a00::"]),
        ("192.0.2.128/25", &["192.0.2.128", "192.0.2.255"], &["192.0.2.127"]),
        ("192.0.2.1/32", &["192.0.2.1"], &["192.0.2.2"]),
        ("0.0.0.0/0", &["192.0.2.1"], &["2001:db8::1", "a.test"]),
        ("fd00::/8", &["fd12::1"], &["fe80::1", "253.0.0.1"]),
        ("::/0", &["2001:db8::1"], &["192.0.2.1"]),
        ("", &[], &["a.test"]),
        (",,", &[], &["a.test"]),
        (".", &[], &["a.test"]),
        ("a.test b.test", &[], &["a.test", "b.test"]),
        ("10.0.0.0/33,10.0.0.0/x,x/8,fd00::/129,10/8", &[], &["10.0.0.1", "fd00::1"]),
        ("http://a.test", &[], &["a.test"]),
        ("a.test:x,a.test:65536", &[], &["a.test"]),
    ] {
        let list = NoProxy::parse(list);
        for (hosts, is_inside) in [(inside, true), (outside, false)] {
            for host in hosts {
                assert_eq!(list.lists(host, 443), is_inside, "{list:?} {host}");
            }
        }
    }
}

// covers: PROXY-C-008
#[test]
fn entry_with_a_port_means_only_that_port() {
    for (entry, host) in [
        ("a.test:8080", "a.test"),
        (".a.test:8080", "b.a.test"),
        ("192.0.2.1:8080", "192.0.2.1"),
        ("[2001:db8::1]:8080", "2001:db8::1"),
        ("*:8080", "a.test"),
    ] {
        let list = NoProxy::parse(entry);
        assert!(list.lists(host, 8080) && !list.lists(host, 443), "{entry}");
    }
    assert_eq!(NoProxy::parse("a, b").as_str(), "a, b");
    assert_eq!(format!("{:?}", NoProxy::parse("a, b")), "NoProxy(\"a, b\")");
}

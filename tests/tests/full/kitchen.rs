//! The examples of a server with everything and of its client, together, and their lines beside
//! those of other SDKs. The program `kitchen` runs the clients and servers of these.

use mcp_tests::example;
use mcp_tests::kitchen::meet;

#[test]
fn client_uses_everything_that_the_server_offers() {
    assert_eq!(
        meet(&[example("kitchen_client").expect("built")], &[example("kitchen_server").expect("built")]),
        Ok(())
    );
}

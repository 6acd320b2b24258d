//! The cache of results of a client with a login.

use super::*;
use crate::client::Cache;
use crate::model::{prompts, resources};

impl Guarded {
    /// A client with a cache that has logged in. It knows a private list and one for everyone.
    fn knowing() -> Self {
        let mut guarded = Self::ready_with(|config| config.cache = Some(Cache::default()));
        guarded.learn(tools::list(), "private");
        guarded.learn(prompts::list(), "public");
        assert!(guarded.hits(tools::list()) && guarded.hits(prompts::list()));
        guarded
    }

    fn learn(&mut self, call: Call<impl Method>, scope: &str) {
        let call = self.http.rig.call(call);
        assert!(!self.http.rig.has_ended(call));
        self.reply(scope);
    }

    fn reply(&mut self, scope: &str) {
        let (exchange, id) = self.last();
        let result = json!({"resultType": "complete", "ttlMs": 86_400_000, "cacheScope": scope});
        self.http.answer(exchange, 200, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn hits(&mut self, call: Call<impl Method>) -> bool {
        let call = self.http.rig.call(call);
        self.http.rig.has_ended(call)
    }
}

// covers: CACHE-C-015, CACHE-B-014
#[test]
fn another_token_has_another_cache() {
    // The server refuses the token: the client refreshes it, and sends the request again.
    let mut guarded = Guarded::knowing();
    guarded.http.rig.call(resources::list());
    let exchange = guarded.last().0;
    guarded.challenge(exchange, 401, "Bearer error=\"invalid_token\"");
    guarded.run();
    assert_eq!(guarded.http.rig.client.cache_stats().entries, 1, "what is for everyone");
    guarded.reply("private");
    assert!(!guarded.hits(resources::list()), "it was first sent with the token before");
    assert!(!guarded.hits(tools::list()) && guarded.hits(prompts::list()));
    // The token expires: the next request brings another one.
    let mut guarded = Guarded::knowing();
    guarded.http.rig.tick(Duration::from_secs(3601));
    assert!(guarded.hits(tools::list()), "the token is the same");
    guarded.http.rig.echo();
    guarded.run();
    assert!(!guarded.hits(tools::list()) && guarded.hits(prompts::list()));
    // The user logs out, or in again.
    for again in [false, true] {
        let mut guarded = Guarded::knowing();
        match again {
            false => guarded.http.rig.client.logout(guarded.http.rig.now),
            true => guarded.http.rig.client.login(guarded.http.rig.now),
        }
        guarded.http.rig.drain();
        guarded.run();
        assert!(!guarded.hits(tools::list()) && guarded.hits(prompts::list()), "{again}");
    }
}

//! JSON Web Tokens against two other libraries: `jose` for JavaScript, and `joserfc` for Python.
//!
//! What our client composes and signs, they verify. What they sign, our verifier verifies. Of
//! tokens and proofs that deviate, in what is signed or after it, all three decide the same, up to
//! a table of what we decide otherwise for a reason. And all three compute the same thumbprints of
//! keys.

mod composed;
mod differences;
mod keys;
mod ours;
mod peer;
mod proofs;
mod report;
mod tokens;

use crate::authorization::Ground;
use crate::sim::rng::Rng;
use composed::{Composer, SignedSample};
use differences::{COMMON, Facts, PROOFS, TOKENS};
use keys::Keys;
use mcp_proto::auth::{AccessDenial, Alg, PublicKey};
use mcp_proto::rpc::Object;
use ours::Ours;
use peer::{Answer, Peer};
use report::{Judgement, Report};
use serde_json::{Value, json};

/// The server, and its issuer.
const RESOURCE: &str = "https://mcp.example/mcp";
const ISSUER: &str = "https://as.example";
/// The Unix time.
const NOW: u64 = 1_800_000_000;
/// By how much clocks may differ, and how old a proof may be, in seconds.
const LEEWAY: u64 = 60;
const WINDOW: u64 = 300;

/// The cases of one batch.
const BATCH: usize = 400;

/// Runs this number of cases. Returns whether all three libraries decided the same.
///
/// # Errors
/// A library could not be installed or run.
pub fn run(cases: usize, seed: u64) -> Result<bool, String> {
    let ground = Ground::new()?;
    let node = Peer::start(differences::JOSE, &ground.node, &ground.packages.join("jose.mjs"))?;
    let python = Peer::start(differences::JOSERFC, &ground.python, &ground.programs.join("joserfc_peer.py"))?;
    compare(node, python, cases, seed)
}

/// Does the same with peers that are started.
fn compare(node: Peer, python: Peer, cases: usize, seed: u64) -> Result<bool, String> {
    let mut run = Run::new(node, python, seed)?;
    while run.report.cases() < cases && run.report.failures() < 10 {
        run.tokens()?;
        run.proofs()?;
        run.composed()?;
        run.thumbprints()?;
    }
    run.report.print();
    Ok(run.report.failures() == 0)
}

struct Run {
    peers: [Peer; 2],
    keys: Keys,
    ours: Ours,
    composers: Vec<Composer>,
    rng: Rng,
    report: Report,
}

impl Run {
    fn new(mut node: Peer, mut python: Peer, seed: u64) -> Result<Self, String> {
        let mut algs: Vec<&str> = Alg::ALL.iter().map(|alg| alg.as_str()).collect();
        algs.push("Ed25519");
        let mut rules = json!({
            "issuer": ISSUER, "resource": RESOURCE, "now": NOW, "leeway": LEEWAY, "window": WINDOW, "algs": algs,
            "keys": [], "strangers": [], "private": {},
        });
        node.tell(&rules)?;
        let keys = Keys::make(&mut node)?;
        keys.tell(&mut rules);
        node.tell(&rules)?;
        python.tell(&rules)?;
        let ours = Ours::new(&keys);
        let report = Report::default();
        Ok(Self { peers: [node, python], keys, ours, composers: Vec::new(), rng: Rng::new(seed), report })
    }

    /// Asks both peers, and returns their answers.
    fn ask(&mut self, questions: [Vec<Value>; 2]) -> Result<[Vec<Answer>; 2], String> {
        for (peer, questions) in self.peers.iter_mut().zip(questions) {
            peer.ask(questions)?;
        }
        let [node, python] = &mut self.peers;
        Ok([node.answers()?, python.answers()?])
    }

    /// Access tokens: a peer signs, or we do, and all verify. Then the same tokens changed.
    fn tokens(&mut self) -> Result<(), String> {
        let drafts: Vec<_> = (0..BATCH).map(|_| tokens::draft(&self.keys, &mut self.rng)).collect();
        // Which peer signs a draft. The third signer is our driver.
        let signers: Vec<usize> = drafts.iter().map(|_| self.rng.below(3) as usize).collect();
        let mut questions = [Vec::new(), Vec::new()];
        for (draft, signer) in drafts.iter().zip(&signers) {
            if let (Some(questions), Some((header, claims))) = (questions.get_mut(*signer), tokens::signable(draft)) {
                questions.push(json!(["sign", draft.key.kid, header, claims]));
            }
        }
        let mut signed = self.ask(questions)?.map(Vec::into_iter);
        let mut all = Vec::new();
        for (draft, signer) in drafts.iter().zip(&signers) {
            let is_asked = *signer < 2 && tokens::signable(draft).is_some();
            let by_peer = signed.get_mut(*signer).filter(|_| is_asked).and_then(Iterator::next);
            let token = match by_peer {
                Some(Ok(answer)) => {
                    self.report.signed(self.peers[*signer].name, draft.alg);
                    answer["token"].as_str().unwrap_or_default().to_owned()
                }
                Some(Err(why)) if draft.is_good => {
                    return Err(format!("{} signs nothing: {why}", self.peers[*signer].name));
                }
                _ => {
                    self.report.signed("mcp-driver", draft.alg);
                    draft.key.sign(draft.alg, &draft.header, &draft.claims)?
                }
            };
            all.push((token, draft.is_good));
        }
        for at in 0..all.len() {
            let (mut token, other) = (all[at].0.clone(), all[(at + 1) % all.len()].0.clone());
            if self.rng.below(2) == 0 && tokens::mutate(&mut token, &other, &mut self.rng) {
                all.push((token, false));
            }
        }
        let asked: Vec<Value> = all.iter().map(|(token, _)| json!(["token", token])).collect();
        let answers = self.ask([asked.clone(), asked])?;
        for (at, (token, is_good)) in all.iter().enumerate() {
            let said = self.ours.token(token).map(|access| {
                let claim = |name| access.claims.str(name);
                json!({ "sub": access.subject, "client_id": claim("client_id"), "scope": claim("scope") })
            });
            let ours = said.map_err(|denial| format!("{denial:?}"));
            let judgement = Judgement { kind: "token", text: token, is_good: *is_good, ours };
            let facts = || Facts::new(token);
            for (peer, answers) in self.peers.iter().zip(&answers) {
                self.report.compare(&judgement, peer.name, &answers[at], &[COMMON, TOKENS], &facts);
            }
            self.report.case(&judgement);
        }
        Ok(())
    }

    /// Proofs of possession: we sign, and all verify.
    fn proofs(&mut self) -> Result<(), String> {
        let mut all = Vec::new();
        for _ in 0..BATCH / 8 {
            let key = self.keys.own[self.rng.of(&[0, 0, 0, 1, 1, 2, 3])].clone();
            let token = self.bound_token(&key)?;
            let draft = proofs::draft(&key, &token, &mut self.rng);
            let signer = if self.rng.below(30) == 0 { &self.keys.strangers[0] } else { &key };
            let alg = if signer.algs.contains(&draft.alg) { draft.alg } else { signer.algs[0] };
            let proof = signer.sign(alg, &draft.header, &draft.claims)?;
            let is_good = draft.is_good && signer.kid == key.kid;
            all.push((proof, token, is_good));
        }
        for at in 0..all.len() {
            let (mut proof, other) = (all[at].0.clone(), all[(at + 1) % all.len()].0.clone());
            if self.rng.below(3) == 0 && tokens::mutate(&mut proof, &other, &mut self.rng) {
                all.push((proof, all[at].1.clone(), false));
            }
        }
        let question = |(proof, token, _): &(String, String, bool)| {
            json!(["proof", proof, token, "POST", RESOURCE, NOW, Value::Null])
        };
        let asked: Vec<Value> = all.iter().map(question).collect();
        let answers = self.ask([asked.clone(), asked])?;
        for (at, (proof, token, is_good)) in all.iter().enumerate() {
            // A proof is used once: one that was changed and says the same would be the second use.
            let ours = match self.ours.proof(token, proof) {
                Err(AccessDenial::Proof("the proof was used before")) => continue,
                ours => ours,
            };
            let ours = ours.map(|_| Value::Null).map_err(|denial| format!("{denial:?}"));
            let judgement = Judgement { kind: "proof", text: proof, is_good: *is_good, ours };
            let facts = || Facts::new(proof);
            for (peer, answers) in self.peers.iter().zip(&answers) {
                self.report.compare(&judgement, peer.name, &answers[at], &[COMMON, PROOFS], &facts);
            }
            self.report.case(&judgement);
        }
        Ok(())
    }

    /// Returns a token that is bound to a key.
    fn bound_token(&self, key: &keys::Key) -> Result<String, String> {
        let claims = json!({
            "iss": ISSUER, "aud": RESOURCE, "sub": "u", "exp": NOW + 3600, "cnf": { "jkt": key.public.thumbprint() },
        });
        self.keys.own[1].sign(Alg::EdDsa, r#"{"alg":"EdDSA","typ":"at+jwt","kid":"ed25519"}"#, &claims.to_string())
    }

    /// What our client composes: both peers verify it.
    fn composed(&mut self) -> Result<(), String> {
        if self.composers.len() < 8 || self.rng.below(4) == 0 {
            let keys = &self.keys.own;
            let key = &keys[self.rng.of(&[0, 0, 1, 1, 2, 3])];
            self.composers.truncate(7);
            self.composers.insert(0, Composer::new(key, self.rng.draw())?);
        }
        let mut all = Vec::new();
        while all.len() < BATCH / 4 {
            let at = self.rng.below(self.composers.len() as u64) as usize;
            all.extend(self.composers[at].next()?);
        }
        let question = |composed: &SignedSample| match composed {
            SignedSample::Proof { text, token, method, url, nonce, unix, .. } => {
                json!(["proof", text, token, method, url, unix, nonce])
            }
            SignedSample::Assertion { text, key, alg, client, issuer, unix, .. } => {
                json!(["assertion", text, alg.as_str(), key.bare_jwk(), client, issuer, unix])
            }
        };
        let asked: Vec<Value> = all.iter().map(question).collect();
        let answers = self.ask([asked.clone(), asked])?;
        for (at, composed) in all.iter().enumerate() {
            let (kind, text, alg) = match composed {
                SignedSample::Proof { text, token: None, alg, .. } => ("own proof for a token request", text, alg),
                SignedSample::Proof { text, alg, .. } => ("own proof", text, alg),
                SignedSample::Assertion { text, alg, .. } => ("own assertion", text, alg),
            };
            self.report.signed("mcp-proto", *alg);
            let judgement = Judgement { kind, text, is_good: true, ours: Ok(Value::Null) };
            for (peer, answers) in self.peers.iter().zip(&answers) {
                let same = match (composed, &answers[at]) {
                    (SignedSample::Assertion { kid, .. }, Ok(said)) => said["kid"] == **kid,
                    _ => true,
                };
                let answer = if same { answers[at].clone() } else { Err("another kid".into()) };
                self.report.compare(&judgement, peer.name, &answer, &[], &|| Facts::new(text));
            }
            self.report.case(&judgement);
        }
        Ok(())
    }

    /// Thumbprints of keys: all compute the same.
    fn thumbprints(&mut self) -> Result<(), String> {
        let mut all = Vec::new();
        for _ in 0..BATCH / 16 {
            let jwk = match self.rng.below(4) {
                0 => keys::Key::make("k", &[Alg::Es256])?.bare_jwk(),
                1 => keys::Key::make("k", &[Alg::EdDsa])?.bare_jwk(),
                2 => keys::Key::make("k", &[Alg::Es384])?.bare_jwk(),
                _ => {
                    let mut modulus: Vec<u8> = (0..256 + self.rng.below(4)).map(|_| self.rng.draw() as u8).collect();
                    modulus[0] |= 0x80;
                    *modulus.last_mut().unwrap_or(&mut 0) |= 1;
                    json!({ "kty": "RSA", "e": "AQAB", "n": crate::base64url::encode(modulus), "kid": "x", "use": "sig" })
                }
            };
            all.push(jwk);
        }
        let asked: Vec<Value> = all.iter().map(|jwk| json!(["thumbprint", jwk])).collect();
        let answers = self.ask([asked.clone(), asked])?;
        for (at, jwk) in all.iter().enumerate() {
            let object = Object::encode(jwk).map_err(|why| why.to_string())?;
            let ours = PublicKey::read(&object).map(|key| json!({ "jkt": key.thumbprint() }));
            let text = jwk.to_string();
            let judgement =
                Judgement { kind: "thumbprint", text: &text, is_good: true, ours: ours.map_err(str::to_owned) };
            for (peer, answers) in self.peers.iter().zip(&answers) {
                self.report.compare(&judgement, peer.name, &answers[at], &[], &|| Facts::new(""));
            }
            self.report.case(&judgement);
        }
        Ok(())
    }
}

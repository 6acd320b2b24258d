// Loads the module that the first argument names, and is its driver: what it imports and exports, a handshake and a call in both eras
// between the client and the server in it, and once with a server that is written here.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";

const module = await WebAssembly.compile(await readFile(process.argv[2]));
let checked = 0;
const is = (actual, expected, what) => { assert.deepEqual(actual, expected, what); checked += 1; };

is(WebAssembly.Module.imports(module), [], "it imports nothing");
const names = WebAssembly.Module.exports(module).filter(({ kind }) => kind === "function").map(({ name }) => name);
is(names.sort(), [
  "buffer",
  "client_add", "client_bytes", "client_close", "client_closed", "client_free", "client_new", "client_opened", "client_poll",
  "client_text", "client_text_len", "client_tick", "client_timeout",
  "login_steps",
  "server_bytes", "server_free", "server_new", "server_poll", "server_text", "server_text_len",
], "it exports its driver's calls");

const { exports: wasm } = await WebAssembly.instantiate(module);
const [NOTHING, OPEN, WRITE, CLOSE, READY, ENDED, TERMINATED, OTHER] = [0, 1, 2, 3, 4, 5, 6, 7];
let now = 0n;

function give(bytes) {
  const at = wasm.buffer(bytes.length);
  new Uint8Array(wasm.memory.buffer, at, bytes.length).set(bytes);
  return at;
}
const seed = (byte) => give(new Uint8Array(32).fill(byte));
const text = (at, length) => new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, at, length).slice());
const encode = (string) => new TextEncoder().encode(string);

// Drives a client until it is silent; `heard` gets what it writes, and gives the bytes that come back.
function drive(client, seen, heard) {
  for (;;) {
    const next = wasm.client_poll(client, now);
    const said = text(wasm.client_text(client), wasm.client_text_len(client));
    if (next === NOTHING) return;
    if (next === OPEN) wasm.client_opened(client, now);
    else if (next === WRITE) {
      for (const answer of heard(said)) {
        const bytes = encode(answer);
        wasm.client_bytes(client, give(bytes), bytes.length, now);
      }
    } else if (next === CLOSE) wasm.client_closed(client, now);
    else seen.push([next, said]);
  }
}

// The server in the module, fed one byte at a time.
function inside() {
  const server = wasm.server_new(seed(1), now);
  const heard = (said) => {
    for (const byte of encode(said)) wasm.server_bytes(server, give(new Uint8Array([byte])), 1, now);
    const answers = [];
    while (wasm.server_poll(server, now) === WRITE) answers.push(text(wasm.server_text(server), wasm.server_text_len(server)));
    return answers;
  };
  return { heard, end: () => wasm.server_free(server) };
}

// A server of the modern era, in a few lines.
function outside(said) {
  const { id, method, params } = JSON.parse(said);
  if (id === undefined) return [];
  const result = method === "server/discover"
    ? { supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, ttlMs: 0, cacheScope: "private" }
    : { content: [{ type: "text", text: String(params.arguments.a + params.arguments.b) }] };
  return [JSON.stringify({ jsonrpc: "2.0", id, result: { resultType: "complete", ...result } }) + "\n"];
}

function talk(legacy, revision, heard) {
  const seen = [];
  const client = wasm.client_new(legacy, seed(2), now);
  const call = wasm.client_add(client, 2, 40, now);
  is(call > 0n, true, "the call is accepted");
  drive(client, seen, heard);
  is(seen[0], [READY, revision], "the two sides agree");
  is(seen[1][0], ENDED, "the call ends");
  is(JSON.parse(seen[1][1]).content, [{ type: "text", text: "42" }], "with its result");
  is(seen.length, 2, `nothing else happens: ${JSON.stringify(seen)}`);
  wasm.client_close(client, now);
  drive(client, seen, heard);
  // How the channel ends is told too.
  is(seen.slice(2).filter(([next]) => next !== OTHER), [[TERMINATED, ""]], "the client ends");
  is(seen.at(-1)[0], TERMINATED, "and says nothing more");
  is(wasm.client_timeout(client), -1n, "and waits for nothing");
  wasm.client_free(client);
}

for (const [legacy, revision] of [[0, "2026-07-28"], [1, "2025-11-25"]]) {
  const server = inside();
  talk(legacy, revision, server.heard);
  server.end();
}
talk(0, "2026-07-28", outside);

// A login begins with the lease of its record.
is(wasm.login_steps(), 1, "a login begins");

// Nobody answers: the clock of the host ends the call, or the negotiation it waits for.
{
  const seen = [];
  const client = wasm.client_new(0, seed(3), now);
  wasm.client_add(client, 1, 1, now);
  for (let turn = 0; turn < 100 && !seen.some(([next]) => next === TERMINATED); turn += 1) {
    drive(client, seen, () => []);
    const at = wasm.client_timeout(client);
    if (at < 0n) break;
    now = at > now ? at : now;
    wasm.client_tick(client, now);
  }
  const ended = seen.filter(([next]) => next === ENDED);
  is([ended.length, ended[0][1].startsWith("error: ")], [1, true], "a call that nobody answers ends once, with an error");
  wasm.client_free(client);
}

// Memory comes back: ten times as many rounds take no more. What they check was checked before, and is not counted again.
const before = checked;
const round = () => { const server = inside(); talk(0, "2026-07-28", server.heard); server.end(); };
for (let n = 0; n < 50; n += 1) round();
const size = wasm.memory.buffer.byteLength;
for (let n = 0; n < 500; n += 1) round();
checked = before;
is(wasm.memory.buffer.byteLength, size, "memory does not grow");

console.log(`the module imports nothing and exports ${names.length} functions; ${(size / 1024).toFixed(0)} KiB of memory`);
console.log(`checked: ${checked}`);

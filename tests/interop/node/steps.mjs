// The steps that a client takes with our server, one line of output for each. `session` hides what differs between the SDKs.
import { strict as assert } from 'node:assert';
import { createInterface } from 'node:readline';
import { areas, areasInSession } from './areas.mjs';
import { SOON, heard, name, text, until } from './heard.mjs';

const MANY = 100;
const LARGE = 1 << 20;

// Sorted by name.
const tools = [
    ...['add', 'cancelled', 'change', 'consult', 'count', 'echo', 'fail'],
    ...['greet', 'log', 'note', 'page', 'poll', 'print'],
    ...['roots', 'sample', 'touch', 'wait'],
];

// The progress that a call tells that pauses so many milliseconds after each step.
async function counted(session, pause) {
    const seen = [];
    const onprogress = (step) => seen.push(step.progress);
    assert.equal(text(await session.call('count', { steps: 3, pause }, { onprogress })), 'counted to 3');
    return seen;
}

// The result of the tool `add`, which is a text before 2025-06-18.
async function added(session, { revision }, a, b) {
    const result = await session.call('add', { a, b });
    return revision >= '2025-06-18' ? result.structuredContent : JSON.parse(text(result));
}

// The tools change until that is heard of: the stream for it may not be open yet, or again. The list is another one then.
async function changed(session) {
    const [before, list] = [heard.changes, await session.list()];
    const end = Date.now() + SOON;
    while (heard.changes === before) {
        assert.ok(Date.now() < end, 'it did not come');
        await session.call('change', {});
        await new Promise((resolve) => setTimeout(resolve, 200));
    }
    assert.notDeepEqual(await session.list(), list);
}

// What needs a session, in the era that has some.
const inSession = [
    ...['form', 'declined', 'model', 'roots', 'cancel', 'cancelled', 'changed'],
    ...['resumed', 'cut', 'changed again', 'changed still'],
    ...areasInSession,
];

const steps = {
    async revision(session, { revision }) {
        assert.equal(session.revision(), revision);
    },
    async list(session) {
        assert.deepEqual((await session.list()).filter((name) => !name.startsWith('changed-')), tools);
    },
    ...areas,
    async structured(session, context) {
        if (context.revision < '2025-06-18') return false;
        assert.deepEqual(await added(session, context, 2, 3), { sum: 5 });
    },
    async text(session) {
        const said = 'grüß \u2028\u{1f600}\n';
        assert.equal(text(await session.call('echo', { text: said })), said);
    },
    async progress(session) {
        assert.deepEqual(await counted(session, 150), [1, 2, 3]);
    },
    async form(session, { revision }) {
        if (revision < '2025-06-18') return false;
        heard.asked = [];
        assert.equal(text(await session.call('greet', {})), `hello ${name}`);
        assert.deepEqual(heard.asked, ['user']);
    },
    async declined(session, { revision }) {
        if (revision < '2025-06-18') return false;
        heard.accept = false;
        assert.equal(text(await session.call('greet', {})), 'no name: decline');
    },
    async model(session) {
        heard.asked = [];
        assert.equal(text(await session.call('sample', {})), 'the model said: forty-two');
        assert.deepEqual(heard.asked, ['model']);
    },
    async roots(session) {
        heard.asked = [];
        assert.equal(text(await session.call('roots', {})), 'roots: file:///somewhere');
        assert.deepEqual(heard.asked, ['roots']);
    },
    async failing(session) {
        const result = await session.call('fail', {});
        assert.equal(result.isError, true);
        assert.equal(text(result), 'this tool always fails');
    },
    async unknown(session) {
        await assert.rejects(session.call('no-such-tool', {}), /no-such-tool/);
    },
    async 'bad arguments'(session, { revision }) {
        const call = session.call('add', { a: 'two' });
        if (revision < '2025-11-25') {
            await assert.rejects(call, /invalid arguments/);
            return;
        }
        const result = await call;
        assert.equal(result.isError, true);
        assert.match(text(result), /invalid arguments/);
    },
    async cancel(session) {
        const abort = new AbortController();
        const call = session.call('wait', {}, { signal: abort.signal });
        setTimeout(() => abort.abort('no longer needed'), 200);
        await assert.rejects(call, /no longer needed/);
    },
    async cancelled(session) {
        assert.equal(text(await session.call('cancelled', {})), '1 cancelled');
    },
    async after(session, context) {
        assert.deepEqual(await added(session, context, 20, 3), { sum: 23 });
    },
    async many(session) {
        const texts = Array.from({ length: MANY }, (_, n) => `number ${n}`);
        const results = await Promise.all(texts.map((text) => session.call('echo', { text })));
        assert.deepEqual(results.map(text), texts);
    },
    async large(session) {
        let said = '';
        for (let n = 0; said.length < LARGE; n++) said += `${n}ü `;
        assert.ok(text(await session.call('echo', { text: said })) === said, 'another text came back');
    },
    async print(session) {
        assert.equal(text(await session.call('print', {})), 'printed');
    },
    async note(session) {
        assert.equal(text(await session.call('note', {})), 'noted');
        await until(() => heard.notes === 1);
    },
    async ping(session, { legacy }) {
        if (legacy) await session.ping();
        return legacy;
    },
    async 'no fault'(session) {
        assert.deepEqual(session.errors.map(String), []);
    },
    // The progress and the result come in one read.
    async burst(session) {
        assert.deepEqual(await counted(session, 0), [1, 2, 3]);
    },
    async changed(session) {
        const before = await session.list();
        await session.call('change', {});
        await until(() => heard.changes === 1);
        assert.notDeepEqual(await session.list(), before);
    },
    // The server closes the stream of the call at each step, and at last before the result.
    async resumed(session, { web, resumes }) {
        if (!web) return false;
        const seen = [];
        const onprogress = (step) => seen.push(step.progress);
        const result = await session.call('poll', { times: 3 }, { onprogress });
        assert.equal(text(result), `closed ${resumes ? 3 : 0} times`);
        assert.deepEqual(seen, [1, 2, 3]);
    },
    // All connections are cut at the first progress.
    async cut(session, { web, resumes }) {
        if (!web || !resumes) return false;
        const seen = [];
        let cut;
        const onprogress = (step) => {
            seen.push(step.progress);
            cut ??= ask('cut');
        };
        assert.equal(text(await session.call('count', { steps: 3, pause: 300 }, { onprogress })), 'counted to 3');
        await cut;
        // Of what a server tells meanwhile, the newest is enough.
        assert.ok(['1,2,3', '1,3'].includes(seen.join()), `${seen}`);
    },
    async 'changed again'(session, { web, resumes }) {
        if (!web || !resumes) return false;
        await changed(session);
    },
    // The server knows nothing of a session from before: 404, whereupon these SDKs leave it to the program to begin another.
    async gone(session, context) {
        if (!context.web) return false;
        await ask('restart');
        if (!context.legacy || context.mode === 'stateless') return false;
        // Over HTTP+SSE, the status is in the text only.
        const isGone = (why) => (context.sse ? why.message.includes('(HTTP 404)') : (why.status ?? why.code) === 404);
        await assert.rejects(session.call('add', { a: 1, b: 1 }), isGone);
        await session.leave();
        context.session = await context.connect();
    },
    async restarted(session, context) {
        if (!context.web) return false;
        assert.deepEqual(await added(session, context, 2, 3), { sum: 5 });
    },
    async 'changed still'(session, { web, legacy }) {
        if (!web) return false;
        if (!legacy) await session.listen();
        await changed(session);
    },
    async close(session) {
        await session.close();
    },
};

const told = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Asks whoever started this program for something, and waits until it is done.
async function ask(what) {
    console.log(what);
    await told.next();
}

// Runs all steps. A step that does not apply says `false` and has no line.
export async function run(connect) {
    const [mode, revision, target, ...args] = process.argv.slice(2);
    const web = /^https?:/.test(target);
    const sse = web && target.endsWith('/sse');
    const webSocket = /^wss?:/.test(target);
    const server = web || webSocket ? { url: new URL(target), sse, webSocket } : { command: target, args, stderr: 'inherit' };
    const context = { mode, revision, web, sse, legacy: revision < '2026-07-28', connect: () => connect(mode, server) };
    context.resumes = revision === '2025-11-25' && mode !== 'stateless' && !sse;
    try {
        context.session = await context.connect();
    } catch (why) {
        console.log(`FAIL connect: ${why.message}`);
        process.exit(1);
    }
    for (const [name, step] of Object.entries(steps)) {
        if (mode === 'stateless' && inSession.includes(name)) continue;
        try {
            if ((await step(context.session, context)) !== false) console.log(`ok ${name}`);
        } catch (why) {
            console.log(`FAIL ${name}: ${String(why.message ?? why).replaceAll('\n', ' ').slice(0, 500)}`);
        }
    }
    console.log('done');
    process.stdin.destroy();
}

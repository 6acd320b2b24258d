// The steps that a client takes with our server, one line of output for each. `session` hides what differs between the SDKs.
import { strict as assert } from 'node:assert';

const MANY = 100;
const LARGE = 1 << 20;
const SOON = 10_000;

export const name = 'Ann';

// What the callbacks of a client have heard, and what its user answers.
export const heard = { asked: [], notes: 0, accept: true };

export function elicit() {
    heard.asked.push('user');
    return heard.accept ? { action: 'accept', content: { name } } : { action: 'decline' };
}

export function sample(params) {
    heard.asked.push('model');
    assert.equal(params.messages[0].content.text, 'What is six times seven?');
    return { role: 'assistant', model: 'none', content: { type: 'text', text: 'forty-two' } };
}

export function roots() {
    heard.asked.push('roots');
    return { roots: [{ uri: 'file:///somewhere', name: 'the only one' }] };
}

const text = (result) => result.content.map((block) => block.text).join('\n');

// Waits until something is so.
async function until(condition) {
    const end = Date.now() + SOON;
    while (!condition()) {
        assert.ok(Date.now() < end, 'it did not come');
        await new Promise((resolve) => setTimeout(resolve, 5));
    }
}

// The progress that a call tells that pauses so many milliseconds after each step.
async function counted(session, pause) {
    const seen = [];
    const onprogress = (step) => seen.push(step.progress);
    assert.equal(text(await session.call('count', { steps: 3, pause }, { onprogress })), 'counted to 3');
    return seen;
}

const steps = {
    async revision(session, { revision }) {
        assert.equal(session.revision(), revision);
    },
    async list(session) {
        const names = await session.list();
        const wanted = ['add', 'echo', 'count', 'greet', 'sample', 'roots', 'fail', 'wait', 'cancelled', 'print', 'note'];
        assert.deepEqual(names, wanted);
    },
    async structured(session) {
        const result = await session.call('add', { a: 2, b: 3 });
        assert.deepEqual(result.structuredContent, { sum: 5 });
    },
    async text(session) {
        const said = 'grüß \u2028\u{1f600}\n';
        assert.equal(text(await session.call('echo', { text: said })), said);
    },
    async progress(session) {
        assert.deepEqual(await counted(session, 30), [1, 2, 3]);
    },
    async form(session) {
        heard.asked = [];
        assert.equal(text(await session.call('greet', {})), `hello ${name}`);
        assert.deepEqual(heard.asked, ['user']);
    },
    async declined(session) {
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
    async 'bad arguments'(session) {
        const result = await session.call('add', { a: 'two' });
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
    async after(session) {
        assert.deepEqual((await session.call('add', { a: 20, b: 3 })).structuredContent, { sum: 23 });
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
    async close(session) {
        await session.close();
    },
};

// Runs all steps. A step that does not apply says `false` and has no line.
export async function run(connect) {
    const [mode, revision, command, ...args] = process.argv.slice(2);
    let session;
    try {
        session = await connect(mode, { command, args, stderr: 'inherit' });
    } catch (why) {
        console.log(`FAIL connect: ${why.message}`);
        process.exit(1);
    }
    for (const [name, step] of Object.entries(steps)) {
        try {
            if ((await step(session, { revision, legacy: revision < '2026-07-28' })) !== false) console.log(`ok ${name}`);
        } catch (why) {
            console.log(`FAIL ${name}: ${String(why.message ?? why).replaceAll('\n', ' ').slice(0, 500)}`);
        }
    }
    console.log('done');
}

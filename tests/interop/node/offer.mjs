// What the servers on both generations of the official TypeScript SDK offer: the same as those with other SDKs. `sdk` hides what differs.
import { z } from 'zod';

const PAGE = 'https://example.org/page';
const NAMES = ['Ann', 'Anton', 'Bob'];
const QUESTION = { role: 'user', content: { type: 'text', text: 'What is six times seven?' } };
const MULTIPLY = {
    name: 'multiply',
    inputSchema: { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } } },
};

// The state of the program, whichever server has the call.
const state = { cancelled: 0, waiting: [], grown: false, passed: false };

// The resources to which the clients have subscribed, in the revisions without subscriptions.
export const subscribed = new Set();

// Thrown by a tool that needs an answer first.
export class Needed {
    constructor(result) {
        this.result = result;
    }
}

const said = (text) => ({ content: [{ type: 'text', text }] });
const names = (entered) => NAMES.filter((name) => name.startsWith(entered));
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
const one = (content) => [content].flat()[0];

export function offer(server, sdk) {
    const tool = (name, shape, run, more = {}) => {
        const config = { description: `The tool ${name}`, inputSchema: sdk.shape(shape), ...more };
        server.registerTool(name, config, async (args, context) => {
            try {
                const result = await run(args, context);
                return typeof result === 'string' ? said(result) : result;
            } catch (why) {
                if (why instanceof Needed) return why.result;
                throw why;
            }
        });
    };
    const count = async ({ steps, pause = 0 }, context) => {
        for (let step = 1; step <= steps; step += 1) {
            await sdk.progress(context, { progress: step, total: steps });
            await sleep(pause);
        }
        return `counted to ${steps}`;
    };
    const steps = { steps: z.int(), pause: z.number().optional() };
    const harmless = { annotations: { readOnlyHint: true } };
    const sum = { ...harmless, outputSchema: sdk.shape({ sum: z.int() }) };
    const numbers = { a: z.int(), b: z.int() };
    tool('add', numbers, ({ a, b }) => ({ ...said(String(a + b)), structuredContent: { sum: a + b } }), sum);
    tool('echo', { text: z.string() }, ({ text }) => text);
    tool('count', steps, count, harmless);
    // As the one before, and may not be asked to twice.
    tool('tally', steps, count);
    tool('greet', {}, async (_, context) => {
        const schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
        const answer = await sdk.elicit(context, 'name', { message: 'What is your name?', requestedSchema: schema });
        return answer.action === 'accept' ? `hello ${answer.content.name}` : `no name: ${answer.action}`;
    });
    tool('sample', {}, async (_, context) => {
        const answer = await sdk.sample(context, 'model', { messages: [QUESTION], maxTokens: 20 });
        return `the model said: ${one(answer.content).text}`;
    });
    tool('roots', {}, async (_, context) => {
        const { roots } = await sdk.roots(context, 'roots');
        return `roots: ${roots.map(({ uri }) => uri).join(', ')}`;
    });
    tool('fail', {}, () => {
        throw new Error('this tool always fails');
    });
    tool('wait', {}, async (_, context) => {
        const signal = sdk.signal(context);
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
        state.cancelled += 1;
        state.waiting.splice(0).forEach((wake) => wake());
        return 'unreachable';
    });
    tool('cancelled', { within: z.number().optional() }, async ({ within = 5 }) => {
        let timer;
        const late = new Promise((resolve) => (timer = setTimeout(resolve, within * 1000)));
        if (state.cancelled === 0) await Promise.race([new Promise((resolve) => state.waiting.push(resolve)), late]);
        clearTimeout(timer);
        if (state.cancelled === 0) return '0 cancelled';
        state.cancelled -= 1;
        return '1 cancelled';
    });
    tool('note', {}, async () => {
        await sdk.changed(server, 'tools');
        return 'noted';
    });

    const plain = (name, uri, mimeType, content) =>
        server.registerResource(name, uri, { mimeType }, () => ({ contents: [{ uri, mimeType, ...content }] }));
    plain('one', 'note://one', 'text/plain', { text: 'the first note' });
    plain('bytes', 'note://bytes', 'application/octet-stream', { blob: 'AAEC/w==' });
    const template = new sdk.ResourceTemplate('greet://{name}', { list: undefined, complete: { name: names } });
    const greet = (uri, { name }) => ({ contents: [{ uri: uri.href, text: `hello ${name}` }] });
    server.registerResource('greeted', template, {}, greet);
    const argsSchema = sdk.shape({ name: sdk.completable(z.string(), names) });
    server.registerPrompt('greeting', { argsSchema }, ({ name }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Say hello to ${name}.` } }],
    }));

    tool('log', {}, async (_, context) => {
        await sdk.log(context, 'info', 'low');
        await sdk.log(context, 'warning', 'high');
        return 'logged';
    });
    tool('touch', {}, async () => {
        await sdk.updated(server, 'note://one');
        return 'touched';
    });
    const grow = () => {
        tool('late', {}, () => 'came later');
        plain('late', 'note://late', 'text/plain', { text: 'came later' });
        server.registerPrompt('late', {}, () => ({ messages: [] }));
    };
    if (state.grown) grow();
    tool('grow', {}, async () => {
        state.grown = true;
        grow();
        for (const list of ['tools', 'prompts', 'resources']) await sdk.changed(server, list);
        return 'grown';
    });
    tool('consult', {}, async (_, context) => {
        // In the revision without sessions, each round has only the answers to the one before.
        let last = sdk.known(context, 'second');
        if (!last) {
            const first = { messages: [QUESTION], maxTokens: 20, tools: [MULTIPLY], toolChoice: { mode: 'required' } };
            const used = one((await sdk.sample(context, 'first', first)).content);
            const product = [{ type: 'text', text: String(used.input.a * used.input.b) }];
            const result = { type: 'tool_result', toolUseId: used.id, content: product };
            const messages = [QUESTION, { role: 'assistant', content: [used] }, { role: 'user', content: [result] }];
            last = await sdk.sample(context, 'second', { messages, maxTokens: 20, tools: [MULTIPLY] });
        }
        return `the model said: ${one(last.content).text}`;
    });
    tool('page', {}, async (_, context) => {
        const { action } = await sdk.open(context, 'page', { message: 'Please log in.', url: PAGE }, 'page-1');
        if (action === 'accept') await sdk.opened(server, 'page-1');
        return `page: ${action}`;
    });
    tool('gate', {}, () => {
        if (!state.passed) {
            state.passed = true;
            const page = { mode: 'url', message: 'Please log in.', url: PAGE, elicitationId: 'gate-1' };
            throw new sdk.UrlElicitationRequiredError([page]);
        }
        return 'let in';
    });
}

// What it declares. The SDKs add the rest.
export const capabilities = { logging: {}, resources: { subscribe: true, listChanged: true } };

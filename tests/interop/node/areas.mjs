// The steps of a client with what our server offers beside tools that answer.
import { strict as assert } from 'node:assert';
import { heard, text, until } from './heard.mjs';

const LEVEL = 'io.modelcontextprotocol/logLevel';

// The steps of an era with sessions that need one.
export const areasInSession = ['logging', 'updated', 'consult', 'page', 'page refused', 'page told'];

// Whether a revision has web pages, and models that use tools.
const asksMore = ({ revision }) => revision >= '2025-11-25';

const complete = async ({ client }, ref, value) => {
    const { completion } = await client.complete({ ref, argument: { name: 'name', value } });
    return completion.values;
};

export const areas = {
    async resources({ client }) {
        const { resources } = await client.listResources();
        const wanted = [
            ['note://bytes', 'application/octet-stream'],
            ['note://one', 'text/plain'],
        ];
        assert.deepEqual(resources.map(({ uri, mimeType }) => [uri, mimeType]), wanted);
    },
    async read({ client }) {
        const { contents } = await client.readResource({ uri: 'note://one' });
        assert.deepEqual(contents, [{ uri: 'note://one', mimeType: 'text/plain', text: 'the first note' }]);
    },
    async blob({ client }) {
        const { contents } = await client.readResource({ uri: 'note://bytes' });
        assert.deepEqual([...Buffer.from(contents[0].blob, 'base64')], [0, 1, 2, 255]);
    },
    async templates({ client }) {
        const { resourceTemplates } = await client.listResourceTemplates();
        assert.deepEqual(resourceTemplates.map(({ uriTemplate }) => uriTemplate), ['greet://{name}']);
    },
    async template({ client }) {
        const { contents } = await client.readResource({ uri: 'greet://Ann' });
        assert.equal(contents[0].text, 'hello Ann');
    },
    async missing({ client, isNotFound }) {
        const isIt = (why) => isNotFound(why) && why.data.uri === 'note://none';
        await assert.rejects(client.readResource({ uri: 'note://none' }), isIt);
    },
    async prompts({ client }) {
        const { prompts } = await client.listPrompts();
        assert.deepEqual(prompts, [{ name: 'greeting', arguments: [{ name: 'name', required: true }] }]);
    },
    async prompt({ client }) {
        const { messages } = await client.getPrompt({ name: 'greeting', arguments: { name: 'Ann' } });
        assert.deepEqual(messages, [{ role: 'user', content: { type: 'text', text: 'Say hello to Ann.' } }]);
    },
    async completion(session) {
        assert.deepEqual(await complete(session, { type: 'ref/prompt', name: 'greeting' }, 'An'), ['Ann', 'Anton']);
    },
    async variable(session) {
        assert.deepEqual(await complete(session, { type: 'ref/resource', uri: 'greet://{name}' }, 'B'), ['Bob']);
    },
    async schema({ client }, { revision }) {
        if (revision < '2025-06-18') return false;
        const { tools } = await client.listTools();
        const { outputSchema } = tools.find(({ name }) => name === 'add');
        assert.deepEqual(outputSchema.properties.sum, { type: 'integer' });
    },
    // The server logs a message below this level first.
    async logging({ client }, { legacy }) {
        if (legacy) await client.setLoggingLevel('warning');
        const meta = legacy ? {} : { _meta: { [LEVEL]: 'warning' } };
        assert.equal(text(await client.callTool({ name: 'log', arguments: {}, ...meta })), 'logged');
        await until(() => heard.logged.length > 0);
        assert.deepEqual(heard.logged, ['warning interop high']);
    },
    async updated(session) {
        const stop = await session.watch('note://one');
        assert.equal(text(await session.call('touch', {})), 'touched');
        await until(() => heard.updated.length > 0);
        await stop();
        assert.deepEqual(heard.updated, ['note://one']);
    },
    async consult(session, context) {
        if (!asksMore(context)) return false;
        heard.asked = [];
        assert.equal(text(await session.call('consult', {})), 'the model said: use-1 gave 42');
        assert.deepEqual(heard.asked, ['model', 'model']);
    },
    async page(session, context) {
        if (!asksMore(context)) return false;
        heard.pages = [];
        heard.opens = true;
        assert.equal(text(await session.call('page', {})), 'page: accept');
        const asked = heard.pages.map(({ url, message }) => [url, message]);
        assert.deepEqual(asked, [['https://example.org/page', 'Please log in.']]);
    },
    // The page of the step before is complete.
    async 'page told'(_, context) {
        if (!asksMore(context) || !context.legacy) return false;
        await until(() => heard.completed.length > 0);
        assert.deepEqual(heard.completed, [heard.pages[0].elicitationId]);
    },
    async 'page refused'(session, context) {
        if (!asksMore(context)) return false;
        heard.opens = false;
        assert.equal(text(await session.call('page', {})), 'page: decline');
    },
};

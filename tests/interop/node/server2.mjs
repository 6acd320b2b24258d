// A server on the official TypeScript SDK, 2.x: `server2.mjs`, or `server2.mjs PORT [--stateless] [--json]` over HTTP.
import {
    McpServer,
    ResourceTemplate,
    UrlElicitationRequiredError,
    WebStandardStreamableHTTPServerTransport,
    completable,
    createMcpHandler,
    inputRequired,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { Needed, capabilities, offer, subscribed } from './offer.mjs';
import { answer, options, serve, sessions } from './web.mjs';

const lists = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'];
const hint = { ttlMs: 60_000, cacheScope: 'public' };
const cacheHints = Object.fromEntries([...lists, 'resources/read', 'server/discover'].map((method) => [method, hint]));
const changed = { tools: 'sendToolListChanged', prompts: 'sendPromptListChanged', resources: 'sendResourceListChanged' };

// Returns the answer to a question, or asks it.
function ask({ mcpReq }, name, question) {
    const answer = mcpReq.inputResponses?.[name];
    if (answer === undefined) throw new Needed(inputRequired({ inputRequests: { [name]: question } }));
    return answer;
}

function create({ era }, notify) {
    const server = new McpServer({ name: 'interop-node', version: '1.0.0' }, { capabilities, cacheHints });
    const modern = era === 'modern';
    offer(server, {
        ResourceTemplate,
        UrlElicitationRequiredError,
        completable,
        shape: (shape) => z.object(shape),
        signal: ({ mcpReq }) => mcpReq.signal,
        async progress({ mcpReq }, progress) {
            const progressToken = mcpReq._meta?.progressToken;
            if (progressToken === undefined) return;
            await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, ...progress } });
        },
        known: ({ mcpReq }, name) => mcpReq.inputResponses?.[name],
        elicit: (context, name, params) => ask(context, name, inputRequired.elicit(params)),
        async open(context, name, page, elicitationId) {
            if (modern) return ask(context, name, inputRequired.elicitUrl(page));
            return context.mcpReq.elicitInput({ mode: 'url', elicitationId, ...page });
        },
        opened: async (server, id) => void (modern || (await server.server.createElicitationCompletionNotifier(id)())),
        sample: (context, name, params) => ask(context, name, inputRequired.createMessage(params)),
        roots: (context, name) => ask(context, name, inputRequired.listRoots()),
        log: ({ mcpReq }, level, data) => mcpReq.log(level, data, 'interop'),
        changed: (server, list) => (notify ? notify(`${list}Changed`) : server[changed[list]]()),
        async updated(server, uri) {
            if (notify) notify('resourceUpdated', uri);
            else if (modern || subscribed.has(uri)) await server.server.sendResourceUpdated({ uri });
        },
    });
    server.server.setRequestHandler('resources/subscribe', ({ params: { uri } }) => {
        subscribed.add(uri);
        return {};
    });
    server.server.setRequestHandler('resources/unsubscribe', ({ params: { uri } }) => {
        subscribed.delete(uri);
        return {};
    });
    return server;
}

if (options.port === undefined) {
    serveStdio((context) => create(context), { onerror: (why) => console.error(why) });
} else {
    const notify = (what, ...uri) => handler.notify[what](...uri);
    const responseMode = options.json ? 'json' : 'auto';
    const onerror = (why) => console.error(why);
    const factory = (context) => create(context, context.era === 'modern' ? notify : undefined);
    const handler = createMcpHandler(factory, { responseMode, onerror });
    const older = sessions(async (settings) => {
        const transport = new WebStandardStreamableHTTPServerTransport(settings);
        await create({ era: 'legacy' }).connect(transport);
        const fetch = (request) => transport.handleRequest(request);
        return { handleRequest: (request, response) => answer(fetch, request, response) };
    });
    serve(async (request, response) => {
        // The SDK has no sessions of its own for the older revisions. A request of the newest names its method in a header.
        const modern = options.stateless || request.headers['mcp-method'] !== undefined;
        await (modern ? answer(handler.fetch, request, response) : older(request, response));
    });
}

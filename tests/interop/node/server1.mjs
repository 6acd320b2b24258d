// A server on the official TypeScript SDK, 1.x: `server1.mjs`, or `server1.mjs PORT [--stateless] [--json] [--sse] [--web-socket]` over HTTP.
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
    CreateMessageResultSchema,
    CreateMessageResultWithToolsSchema,
    ElicitResultSchema,
    ListRootsResultSchema,
    SubscribeRequestSchema,
    UnsubscribeRequestSchema,
    UrlElicitationRequiredError,
} from '@modelcontextprotocol/sdk/types.js';
import { capabilities, offer, subscribed } from './offer.mjs';
import { options, serve, sessions } from './web.mjs';
import { WebSocketServer } from 'ws';

const changed = { tools: 'sendToolListChanged', prompts: 'sendPromptListChanged', resources: 'sendResourceListChanged' };

function create() {
    const server = new McpServer({ name: 'interop-node', version: '1.0.0' }, { capabilities });
    offer(server, {
        ResourceTemplate,
        UrlElicitationRequiredError,
        completable,
        shape: (shape) => shape,
        signal: (extra) => extra.signal,
        async progress({ _meta, sendNotification }, progress) {
            const progressToken = _meta?.progressToken;
            if (progressToken === undefined) return;
            await sendNotification({ method: 'notifications/progress', params: { progressToken, ...progress } });
        },
        known: () => undefined,
        elicit: ({ sendRequest }, _, params) => sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema),
        open({ sendRequest }, _, page, elicitationId) {
            const params = { mode: 'url', elicitationId, ...page };
            return sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema);
        },
        opened: (server, id) => server.server.createElicitationCompletionNotifier(id)(),
        sample({ sendRequest }, _, params) {
            const schema = params.tools ? CreateMessageResultWithToolsSchema : CreateMessageResultSchema;
            return sendRequest({ method: 'sampling/createMessage', params }, schema);
        },
        roots: ({ sendRequest }) => sendRequest({ method: 'roots/list' }, ListRootsResultSchema),
        log: ({ sessionId }, level, data) => server.sendLoggingMessage({ level, logger: 'interop', data }, sessionId),
        changed: (server, list) => server[changed[list]](),
        updated: async (server, uri) => void (subscribed.has(uri) && (await server.server.sendResourceUpdated({ uri }))),
    });
    server.server.setRequestHandler(SubscribeRequestSchema, ({ params: { uri } }) => {
        subscribed.add(uri);
        return {};
    });
    server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params: { uri } }) => {
        subscribed.delete(uri);
        return {};
    });
    return server;
}

if (options.port === undefined) {
    await create().connect(new StdioServerTransport());
} else if (options.sse) {
    const transports = new Map();
    serve(async (request, response) => {
        const url = new URL(request.url, 'http://127.0.0.1');
        if (url.pathname === '/sse' && request.method === 'GET') {
            const transport = new SSEServerTransport('/messages', response);
            transports.set(transport.sessionId, transport);
            response.on('close', () => transports.delete(transport.sessionId));
            await create().connect(transport);
        } else if (url.pathname === '/messages' && request.method === 'POST') {
            const transport = transports.get(url.searchParams.get('sessionId'));
            if (transport) await transport.handlePostMessage(request, response);
            else response.writeHead(404).end('Session not found');
        } else {
            response.writeHead(url.pathname === '/sse' ? 405 : 404).end();
        }
    });
} else if (options.webSocket) {
    const server = serve(async (_request, response) => void response.writeHead(404).end());
    const sockets = new WebSocketServer({ server, path: '/mcp', handleProtocols: (offered) => offered.has('mcp') && 'mcp' });
    sockets.on('connection', async (socket) => {
        // The SDK has this transport for clients only.
        const transport = {
            start: async () => {},
            send: async (message) => socket.send(JSON.stringify(message)),
            close: async () => socket.close(),
        };
        socket.on('message', (data) => transport.onmessage?.(JSON.parse(data)));
        socket.on('close', () => {
            console.log('WebSocket ended');
            transport.onclose?.();
        });
        await create().connect(transport);
    });
} else {
    const begin = async (settings) => {
        const transport = new StreamableHTTPServerTransport(settings);
        await create().connect(transport);
        return transport;
    };
    serve(sessions(begin));
}

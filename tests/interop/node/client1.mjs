// A client on the official TypeScript SDK, 1.x: `client1.mjs legacy REVISION PROGRAM ARGUMENTS...`, or a URL in the place of the program.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ElicitationCompleteNotificationSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { capabilities, completed, elicit, heard, logged, roots, sample, updated } from './heard.mjs';
import { run } from './steps.mjs';
import { WebSocket } from 'ws';

// Older versions of Node.js have none of their own.
globalThis.WebSocket = WebSocket;

await run(async (_mode, server) => {
    const client = new Client({ name: 'interop-node', version: '1.0.0' }, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, (request) => elicit(request.params));
    client.setRequestHandler(CreateMessageRequestSchema, (request) => sample(request.params));
    client.setRequestHandler(ListRootsRequestSchema, () => roots());
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void (heard.changes += 1));
    client.setNotificationHandler(LoggingMessageNotificationSchema, logged);
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, updated);
    client.setNotificationHandler(ElicitationCompleteNotificationSchema, completed);
    client.fallbackNotificationHandler = async ({ method }) => {
        if (method === 'notifications/interop') heard.notes += 1;
    };
    const errors = [];
    client.onerror = (why) => errors.push(why);
    const { sse, webSocket } = server;
    const Web = sse ? SSEClientTransport : webSocket ? WebSocketClientTransport : StreamableHTTPClientTransport;
    const transport = server.url ? new Web(server.url) : new StdioClientTransport(server);
    // The SDK keeps the revision to itself but for the transports that put it into a header: it tells those.
    let revision;
    const tell = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
        revision = version;
        tell?.(version);
    };
    await client.connect(transport);
    return {
        client,
        errors,
        isNotFound: (why) => why.code === -32002,
        revision: () => revision,
        async list() {
            const names = [];
            let cursor;
            do {
                const page = await client.listTools({ cursor });
                names.push(...page.tools.map((tool) => tool.name));
                cursor = page.nextCursor;
            } while (cursor !== undefined);
            return names;
        },
        call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
        ping: () => client.ping(),
        async watch(uri) {
            await client.subscribeResource({ uri });
            return () => client.unsubscribeResource({ uri });
        },
        // Without a word to the server.
        leave: () => client.close(),
        async close() {
            await transport.terminateSession?.();
            await client.close();
        },
    };
});

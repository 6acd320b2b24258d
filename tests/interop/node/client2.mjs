// A client on the official TypeScript SDK, 2.x: `client2.mjs auto|modern|legacy REVISION PROGRAM ARGUMENTS...`, or a URL in the place of
// the program.
import {
    Client,
    ResourceNotFoundError,
    SSEClientTransport,
    StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { capabilities, completed, elicit, heard, logged, roots, sample, updated } from './heard.mjs';
import { run } from './steps.mjs';

const modes = { auto: 'auto', modern: { pin: '2026-07-28' }, legacy: 'legacy', stateless: 'legacy' };

await run(async (mode, server) => {
    const onChanged = () => (heard.changes += 1);
    const listChanged = { tools: { autoRefresh: false, debounceMs: 0, onChanged } };
    const options = { capabilities, listChanged, versionNegotiation: { mode: modes[mode] } };
    const client = new Client({ name: 'interop-node', version: '1.0.0' }, options);
    client.setRequestHandler('elicitation/create', (request) => elicit(request.params));
    client.setRequestHandler('sampling/createMessage', (request) => sample(request.params));
    client.setRequestHandler('roots/list', () => roots());
    client.setNotificationHandler('notifications/message', logged);
    client.setNotificationHandler('notifications/resources/updated', updated);
    client.setNotificationHandler('notifications/elicitation/complete', completed);
    client.fallbackNotificationHandler = async ({ method }) => {
        if (method === 'notifications/interop') heard.notes += 1;
    };
    const errors = [];
    client.onerror = (why) => errors.push(why);
    const Web = server.sse ? SSEClientTransport : StreamableHTTPClientTransport;
    const transport = server.url ? new Web(server.url) : new StdioClientTransport(server);
    await client.connect(transport);
    return {
        client,
        errors,
        isNotFound: (why) => why instanceof ResourceNotFoundError,
        revision: () => client.getNegotiatedProtocolVersion(),
        list: async () => (await client.listTools()).tools.map((tool) => tool.name),
        call: (name, args, options) => client.callTool({ name, arguments: args }, options),
        ping: () => client.ping(),
        async watch(uri) {
            if (client.getNegotiatedProtocolVersion() >= '2026-07-28') {
                const subscription = await client.listen({ resourceSubscriptions: [uri] });
                return () => subscription.close();
            }
            await client.subscribeResource({ uri });
            return () => client.unsubscribeResource({ uri });
        },
        listen: () => client.listen({ toolsListChanged: true }),
        // Without a word to the server.
        leave: () => client.close(),
        async close() {
            await transport.terminateSession?.();
            await client.close();
        },
    };
});

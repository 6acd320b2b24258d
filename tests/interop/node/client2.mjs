// A client on the official TypeScript SDK, 2.x: `client2.mjs auto|modern|legacy REVISION PROGRAM ARGUMENTS...`.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { elicit, heard, roots, run, sample } from './steps.mjs';

const modes = { auto: 'auto', modern: { pin: '2026-07-28' }, legacy: 'legacy' };

await run(async (mode, server) => {
    const capabilities = { elicitation: {}, sampling: {}, roots: {} };
    const options = { capabilities, versionNegotiation: { mode: modes[mode] } };
    const client = new Client({ name: 'interop-node', version: '1.0.0' }, options);
    client.setRequestHandler('elicitation/create', () => elicit());
    client.setRequestHandler('sampling/createMessage', (request) => sample(request.params));
    client.setRequestHandler('roots/list', () => roots());
    client.fallbackNotificationHandler = async ({ method }) => {
        if (method === 'notifications/interop') heard.notes += 1;
    };
    const errors = [];
    client.onerror = (why) => errors.push(why);
    await client.connect(new StdioClientTransport(server));
    return {
        errors,
        revision: () => client.getNegotiatedProtocolVersion(),
        list: async () => (await client.listTools()).tools.map((tool) => tool.name),
        call: (name, args, options) => client.callTool({ name, arguments: args }, options),
        ping: () => client.ping(),
        close: () => client.close(),
    };
});

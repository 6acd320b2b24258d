// Clients on the official TypeScript SDK, 2.x. MODE is `modern`, `legacy`, or `sse` for HTTP+SSE.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { run } from './calls.mjs';

await run(async (url, mode, answer) => {
    const versionNegotiation = { mode: mode === 'modern' ? { pin: '2026-07-28' } : 'legacy' };
    const options = { capabilities: { elicitation: { form: {} } }, versionNegotiation };
    const client = new Client({ name: 'nodes-node', version: '1.0.0' }, options);
    client.setRequestHandler('elicitation/create', answer);
    client.onerror = () => {};
    await client.connect(mode === 'sse' ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url));
    return {
        call: (name, args, options) => client.callTool({ name, arguments: args }, options),
        close: () => client.close(),
    };
});

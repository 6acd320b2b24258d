// Clients on the official TypeScript SDK, 1.x. MODE is `legacy`, or `sse` for HTTP+SSE.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { run } from './calls.mjs';

await run(async (url, mode, answer) => {
    const client = new Client({ name: 'nodes-node', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } } });
    client.setRequestHandler(ElicitRequestSchema, answer);
    client.onerror = () => {};
    await client.connect(mode === 'sse' ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url));
    return {
        call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
        close: () => client.close(),
    };
});

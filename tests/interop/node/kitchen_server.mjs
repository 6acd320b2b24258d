// The server of `examples/kitchen_server.rs` on the official TypeScript SDK, 1.x.
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const dishes = ['salad', 'soup', 'stew'];
const server = new McpServer({ name: 'kitchen', version: '1.0' });
server.registerTool(
    'order',
    { description: 'Orders dishes', inputSchema: { dish: z.string(), count: z.number().int() } },
    ({ dish, count }) => ({ content: [{ type: 'text', text: `${count} of ${dish}` }] }),
);
server.registerResource('hours', 'kitchen://hours', { mimeType: 'text/plain' }, (uri) => ({
    contents: [{ uri: uri.href, text: '11 to 22' }],
}));
server.registerResource(
    'dish',
    new ResourceTemplate('kitchen://dishes/{dish}', { list: undefined }),
    { mimeType: 'text/plain' },
    (uri, { dish }) => {
        if (!dishes.includes(dish)) throw new Error('no such dish');
        return { contents: [{ uri: uri.href, text: `${dish} of the day` }] };
    },
);
const dish = completable(z.string(), (entered) => dishes.filter((dish) => dish.startsWith(entered)));
server.registerPrompt('praise', { argsSchema: { dish } }, ({ dish }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Praise the ${dish}.` } }],
}));
await server.connect(new StdioServerTransport());

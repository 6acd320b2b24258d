// The client of `examples/kitchen_client.rs` on the official TypeScript SDK, 1.x.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'kitchen', version: '1.0' });
await client.connect(new StdioClientTransport({ command, args }));
const order = await client.callTool({ name: 'order', arguments: { dish: 'soup', count: 2 } });
const hours = await client.readResource({ uri: 'kitchen://hours' });
const dish = await client.readResource({ uri: 'kitchen://dishes/stew' });
const prompt = await client.getPrompt({ name: 'praise', arguments: { dish: 'salad' } });
const dishes = await client.complete({
    ref: { type: 'ref/prompt', name: 'praise' },
    argument: { name: 'dish', value: 's' },
});
for (const { text } of [order.content[0], hours.contents[0], dish.contents[0], prompt.messages[0].content]) {
    console.log(text);
}
console.log(dishes.completion.values.join(', '));
await client.close();

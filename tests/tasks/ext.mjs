// A client on `ext-tasks`: `ext.mjs modern|legacy PROGRAM ARGUMENTS...` calls the tool `greet` of a server, answers the question of its task, and
// prints the outcome. `--cancel` cancels the task of the tool `forever` instead.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';

const [era, ...words] = process.argv.slice(2);
const cancels = words[0] === '--cancel';
const [command, ...args] = cancels ? words.slice(1) : words;
const modern = era === 'modern';
const clientInfo = { name: 'ext-tasks', version: '1' };
const clientCapabilities = { elicitation: { form: {} } };
if (modern) clientCapabilities.extensions = { 'io.modelcontextprotocol/tasks': {} };

const client = new Client(clientInfo, {
    capabilities: clientCapabilities,
    versionNegotiation: { mode: modern ? { pin: '2026-07-28' } : 'legacy' },
});
const transport = new StdioClientTransport({ command, args });
await client.connect(transport);

// The codecs of the SDK refuse results that are tasks, so requests about them pass beside it.
const waiting = new Map();
const receive = transport.onmessage;
transport.onmessage = (message, extra) => {
    const resolve = waiting.get(message.id);
    if (resolve === undefined) return receive.call(transport, message, extra);
    waiting.delete(message.id);
    const { error, result } = message;
    resolve(error === undefined ? { kind: 'result', result } : { kind: 'error', error });
};
let last = 0;
const rawDispatch = async (request) => {
    const id = `raw-${(last += 1)}`;
    const response = new Promise((resolve) => waiting.set(id, resolve));
    await transport.send({ ...request, jsonrpc: '2.0', id });
    return response;
};

let asked = 0;
const session = createTaskSessionFromClient(client, {
    endpointId: 'interop',
    ...(modern ? { rawDispatch, v2RequestFraming: { protocolVersion: '2026-07-28', clientInfo, clientCapabilities } } : {}),
    onInputRequest: async () => {
        asked += 1;
        return { action: 'accept', content: { name: 'Ada' } };
    },
});
const declaration = { name: cancels ? 'forever' : 'greet', inputSchema: { type: 'object' }, taskSupport: 'optional' };
const execution = await session.callTool(declaration.name, {}, { declaration, task: { preference: 'require' } });
const statuses = new Set();
if (cancels) await execution.cancel();
const { outcome } = await execution.settle({
    onEvent: (event) => {
        if (event.type === 'task') statuses.add(event.task.status);
    },
});
const text = outcome.result?.content?.[0]?.text;
console.log(JSON.stringify({ kind: execution.kind, status: outcome.status, text, asked }));
await session.close();
await client.close();

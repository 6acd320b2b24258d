// A host on `ext-apps`: `apps.mjs PROGRAM ARGUMENTS...` finds the document of a tool of a server as a host does, and prints what it found.
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import {
    McpUiResourceMetaSchema,
    RESOURCE_MIME_TYPE,
    buildAllowAttribute,
    getToolUiResourceUri,
    isToolVisibilityAppOnly,
    isToolVisibilityModelOnly,
} from '@modelcontextprotocol/ext-apps/app-bridge';
import { EXTENSION_ID } from '@modelcontextprotocol/ext-apps/server';

const [mode, command, ...args] = process.argv.slice(2);
const versionNegotiation = { mode: mode === 'modern' ? { pin: '2026-07-28' } : 'legacy' };
const extensions = { [EXTENSION_ID]: { mimeTypes: [RESOURCE_MIME_TYPE] } };
const client = new Client({ name: 'apps-node', version: '1' }, { capabilities: { extensions }, versionNegotiation });
await client.connect(new StdioClientTransport({ command, args }));
const { tools } = await client.listTools();
const shown = tools.find(({ name }) => name === 'time');
const uri = getToolUiResourceUri(shown);
const { contents } = await client.readResource({ uri });
const [{ mimeType, text, _meta }] = contents;
const ui = McpUiResourceMetaSchema.parse(_meta.ui);
const result = await client.callTool({ name: 'time', arguments: {} });
console.log(
    JSON.stringify({
        uri,
        html: mimeType === RESOURCE_MIME_TYPE && text.startsWith('<!doctype html>'),
        connect: ui.csp.connectDomains,
        allow: buildAllowAttribute(ui.permissions),
        border: ui.prefersBorder,
        apps: tools.filter(isToolVisibilityAppOnly).map(({ name }) => name),
        models: tools.filter(isToolVisibilityModelOnly).map(({ name }) => name),
        text: result.content[0].text,
    }),
);
await client.close();

// An MCP server on the official TypeScript SDK that accepts the tokens of an authorization server: `guarded_server.mjs ISSUER`. Writes
// `LISTENING URL`, and ends with its standard input.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import express from 'express';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const issuer = process.argv[2];
const app = express();
const http = createServer(app);
http.listen(0, '127.0.0.1');
await once(http, 'listening');
const url = new URL(`http://127.0.0.1:${http.address().port}/mcp`);
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));

const verifier = {
    async verifyAccessToken(token) {
        const { payload } = await jwtVerify(token, keys, { algorithms: ['ES256'], audience: url.href, issuer, typ: 'at+jwt' });
        const { client_id: clientId, exp: expiresAt, scope = '', sub } = payload;
        return { token, clientId, scopes: scope.split(' '), expiresAt, resource: url, extra: { sub } };
    },
};

const metadata = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
app.use(mcpAuthMetadataRouter({ oauthMetadata: metadata, resourceServerUrl: url, scopesSupported: ['mcp:basic'] }));
const guard = requireBearerAuth({
    verifier,
    requiredScopes: ['mcp:basic'],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url),
    expectedResource: url,
});
app.all('/mcp', guard, express.json(), async (request, response) => {
    const server = new McpServer({ name: 'guarded', version: '1.0.0' });
    server.registerTool('whoami', {}, ({ authInfo }) => {
        const text = `${authInfo.extra.sub} ${authInfo.scopes.toSorted().join(' ')}`;
        return { content: [{ type: 'text', text }] };
    });
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on('close', () => transport.close());
    await server.connect(transport);
    await transport.handleRequest(request, response, request.body);
});
process.stdin.on('end', () => process.exit(0)).resume();
console.log(`LISTENING ${url.href}`);

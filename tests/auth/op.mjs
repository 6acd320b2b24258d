// An authorization server and, at another origin, an MCP server that it guards. `op.mjs` writes `LISTENING ISSUER SERVER` on its standard
// output, and ends with its standard input. The paths of the MCP server are resources of their own: `/mcp`, and `/brief` with tokens of 5 s.
// `GET /events` there returns what has happened since the last time, a line for each: `grant CLIENT TYPE`, `grant-error ERROR`,
// `registered CLIENT`, `page CLIENT`, `refused ERROR`, `revoked CLIENT`.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { calculateJwkThumbprint, createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose';
import Provider from 'oidc-provider';

// The lifetimes of access tokens by path, in seconds.
const LIFETIMES = { '/mcp': 600, '/brief': 5 };
const METADATA = '/.well-known/oauth-protected-resource';
const SCOPES = ['mcp:basic', 'mcp:write'];
// The scopes that each tool needs.
const TOOLS = { whoami: ['mcp:basic'], write: ['mcp:write'] };

async function listen() {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return [server, `http://127.0.0.1:${server.address().port}`];
}

const [authorization, issuer] = await listen();
const [guarded, base] = await listen();
const events = [];

const { privateKey } = await generateKeyPair('ES256', { extractable: true });
const jwk = { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig' };
const on = { enabled: true };
const provider = new Provider(issuer, {
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    features: {
        devInteractions: on,
        registration: on,
        revocation: on,
        resourceIndicators: {
            ...on,
            defaultResource: () => `${base}/mcp`,
            useGrantedResource: () => true,
            getResourceServerInfo: (_, resource) => ({
                scope: SCOPES.join(' '),
                audience: resource,
                accessTokenTTL: LIFETIMES[new URL(resource).pathname],
                accessTokenFormat: 'jwt',
                jwt: { sign: { alg: 'ES256' } },
            }),
        },
    },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    jwks: { keys: [{ ...jwk, kid: await calculateJwkThumbprint(jwk) }] },
    pkce: { required: () => true },
    scopes: ['openid', 'offline_access', ...SCOPES],
});
const client = (context) => context.oidc.client?.clientId;
provider.on('grant.success', (context) => events.push(`grant ${client(context)} ${context.oidc.params.grant_type}`));
provider.on('grant.error', (_, error) => events.push(`grant-error ${error.error}`));
provider.on('registration_create.success', (_, { clientId }) => events.push(`registered ${clientId}`));
provider.on('interaction.started', (context, { name }) => name === 'login' && events.push(`page ${client(context)}`));
provider.on('authorization.error', (_, error) => events.push(`refused ${error.error}`));
provider.on('grant.revoked', (context) => events.push(`revoked ${client(context)}`));
authorization.on('request', provider.callback());

const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));

// Returns the claims of the token in a request to a resource, or undefined.
async function verify(request, resource) {
    const [scheme, token] = (request.headers.authorization ?? '').split(' ');
    if (scheme.toLowerCase() !== 'bearer' || !token) return undefined;
    const { payload } = await jwtVerify(token, keys, { algorithms: ['ES256'], audience: resource, issuer, typ: 'at+jwt' });
    return payload;
}

// Answers a message of a client whose token has these claims: with a result, or with the scopes that it lacks.
function answer({ method, params = {} }, claims) {
    const granted = claims.scope?.split(' ') ?? [];
    if (method === 'initialize') {
        const serverInfo = { name: 'guarded', version: '1.0.0' };
        return { result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo } };
    }
    if (method === 'tools/list') {
        return { result: { tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: 'object' } })) } };
    }
    if (method === 'tools/call' && TOOLS[params.name]) {
        const needed = TOOLS[params.name];
        if (!needed.every((scope) => granted.includes(scope))) return { needed };
        return { result: { content: [{ type: 'text', text: `${claims.sub} ${granted.toSorted().join(' ')}` }] } };
    }
    return { error: { code: -32601, message: 'Method not found' } };
}

async function serve(request, response) {
    const path = request.url;
    const send = (status, fields, value) => {
        const body = value === undefined ? '' : JSON.stringify(value);
        response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...fields });
        response.end(body);
    };
    if (path === '/events') return send(200, {}, events.splice(0));
    const about = path.startsWith(METADATA) ? path.slice(METADATA.length) : path;
    if (LIFETIMES[about] === undefined) return send(404, {}, {});
    const resource = base + about;
    if (path !== about) {
        return send(200, {}, { resource, authorization_servers: [issuer], scopes_supported: SCOPES });
    }
    if (request.method !== 'POST') return send(405, { allow: 'POST' }, {});
    const challenge = (error, scopes) => {
        const scope = `scope="${scopes.join(' ')}", resource_metadata="${base}${METADATA}${about}"`;
        return { 'www-authenticate': `Bearer ${error ? `error="${error}", ` : ''}${scope}` };
    };
    let claims;
    try {
        claims = await verify(request, resource);
    } catch (why) {
        return send(401, challenge('invalid_token', ['mcp:basic']), { error: 'invalid_token', error_description: `${why}` });
    }
    if (!claims) return send(401, challenge(undefined, ['mcp:basic']), {});
    const message = await json(request);
    if (message.id === undefined) return send(202, {});
    const { needed, ...rest } = answer(message, claims);
    if (needed) return send(403, challenge('insufficient_scope', needed), { error: 'insufficient_scope' });
    return send(200, {}, { jsonrpc: '2.0', id: message.id, ...rest });
}

guarded.on('request', (request, response) => {
    serve(request, response).catch((why) => {
        console.error(why);
        response.destroy();
    });
});
process.stdin.on('end', () => process.exit(0)).resume();
console.log(`LISTENING ${issuer} ${base}`);

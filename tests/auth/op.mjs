// An authorization server and, at another origin, an MCP server that it guards. `op.mjs` writes `LISTENING ISSUER SERVER` on its standard
// output, and ends with its standard input. The paths of the MCP server are resources of their own: `/mcp`, two with
// tokens of 10 and of 5 s, and `/bound` with tokens of 5 s that are bound to a key, whose proofs need a nonce. A server elsewhere has tokens
// by its path as well; those for `/opaque` tell nothing, and the client `resource` with the secret `secret` may ask about them.
// `GET /events` there returns what has happened since the last time, a line for each: `grant CLIENT TYPE`, `grant-error ERROR`,
// `registered CLIENT`, `page CLIENT`, `refused ERROR`, `revoked CLIENT`, and of the resources `denied ERROR`. Two clients are known from the
// beginning: `machine` with the secret `machine-secret`, and `signer` with the key that `GET /key` returns. `op.mjs FOLDER` listens with TLS:
// the folder has `cert.pem` and `key.pem`.
// It is an identity provider, too: `desk` logs users in, and exchanges their ID tokens for grants of the client `app` at other issuers.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { json } from 'node:stream/consumers';
import { EmbeddedJWK, SignJWT, calculateJwkThumbprint, createRemoteJWKSet, exportJWK, exportPKCS8, generateKeyPair, jwtVerify } from 'jose';
import Provider, { errors } from 'oidc-provider';

// The lifetimes of access tokens by path, in seconds.
const LIFETIMES = { '/mcp': 600, '/opaque': 600, '/ten': 10, '/brief': 5, '/bound': 5 };
const METADATA = '/.well-known/oauth-protected-resource';
const SCOPES = ['mcp:basic', 'mcp:write'];
// The resource whose tokens are bound to a key.
const BOUND = '/bound';
// The exchange of an ID token for a grant, and the types of both.
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';
// The scopes that each tool needs.
const TOOLS = { whoami: ['mcp:basic'], write: ['mcp:write'] };

const folder = process.argv[2];

async function listen() {
    const read = (name) => readFileSync(`${folder}/${name}`);
    const server = folder ? createSecureServer({ cert: read('cert.pem'), key: read('key.pem') }) : createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return [server, `${folder ? 'https' : 'http'}://127.0.0.1:${server.address().port}`];
}

const [authorization, issuer] = await listen();
const [guarded, base] = await listen();
const events = [];

const { privateKey } = await generateKeyPair('ES256', { extractable: true });
const jwk = { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig' };
const signer = await generateKeyPair('ES256', { extractable: true });
const alone = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] };
const on = { enabled: true };
const provider = new Provider(issuer, {
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    clients: [
        { client_id: 'resource', client_secret: 'secret', grant_types: [], redirect_uris: [], response_types: [] },
        { client_id: 'machine', client_secret: 'machine-secret', token_endpoint_auth_method: 'client_secret_basic', ...alone },
        {
            client_id: 'signer',
            jwks: { keys: [await exportJWK(signer.publicKey)] },
            token_endpoint_auth_method: 'private_key_jwt',
            token_endpoint_auth_signing_alg: 'ES256',
            ...alone,
        },
        {
            client_id: 'desk',
            grant_types: ['authorization_code', EXCHANGE],
            redirect_uris: ['http://127.0.0.1:1/'],
            token_endpoint_auth_method: 'none',
        },
    ],
    features: {
        clientCredentials: on,
        deviceFlow: on,
        devInteractions: on,
        // Its own nonces change every minute.
        dPoP: { ...on, nonceSecret: randomBytes(32), requireNonce: () => true },
        introspection: on,
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
                accessTokenFormat: resource.endsWith('/opaque') ? 'opaque' : 'jwt',
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

// An exchange is for one issuer and one server, and the grant lives for a minute.
const parameters = ['audience', 'requested_token_type', 'resource', 'scope', 'subject_token', 'subject_token_type'];
provider.registerGrantType(EXCHANGE, async (context) => {
    const { audience, resource, scope, ...asked } = context.oidc.params;
    if (asked.requested_token_type !== ID_JAG || asked.subject_token_type !== ID_TOKEN || !audience || !resource) {
        throw new errors.InvalidRequest('not the exchange of an ID token for a grant');
    }
    const options = { algorithms: ['ES256'], audience: context.oidc.client.clientId, issuer };
    const { payload } = await jwtVerify(asked.subject_token, keys, options).catch((why) => {
        throw new errors.InvalidGrant(`${why}`);
    });
    const grant = new SignJWT({ client_id: 'app', resource, scope }).setIssuer(issuer).setSubject(payload.sub).setAudience(audience);
    grant.setProtectedHeader({ alg: 'ES256', kid: await calculateJwkThumbprint(jwk), typ: 'oauth-id-jag+jwt' });
    const signed = await grant.setJti(randomUUID()).setIssuedAt().setExpirationTime('60s').sign(privateKey);
    context.body = { access_token: signed, expires_in: 60, issued_token_type: ID_JAG, scope, token_type: 'N_A' };
}, parameters);

// Returns the claims of the token in a request to a resource, or undefined.
async function verify(request, resource) {
    const [scheme, token] = (request.headers.authorization ?? '').split(' ');
    if (scheme.toLowerCase() !== 'bearer' || !token) return undefined;
    const { payload } = await jwtVerify(token, keys, { algorithms: ['ES256'], audience: resource, issuer, typ: 'at+jwt' });
    return payload;
}

// The nonce of the resource, and the proofs that were used.
const nonce = randomBytes(16).toString('base64url');
const used = new Set();

// Checks the proof in a request with a bound token. Returns the claims of the token, or undefined if there is none.
async function prove(request, resource) {
    const [scheme, token] = (request.headers.authorization ?? '').split(' ');
    if (!token) return undefined;
    if (scheme.toLowerCase() !== 'dpop') throw new Error('invalid_token');
    const claims = await jwtVerify(token, keys, { algorithms: ['ES256'], audience: resource, issuer, typ: 'at+jwt' });
    const proofs = request.headersDistinct.dpop ?? [];
    if (proofs.length !== 1) throw new Error('invalid_dpop_proof');
    const proof = await jwtVerify(proofs[0], EmbeddedJWK, { algorithms: ['ES256', 'EdDSA'], maxTokenAge: 60, typ: 'dpop+jwt' });
    const { ath, htm, htu, jti, nonce: sent } = proof.payload;
    const right =
        ath === createHash('sha256').update(token).digest('base64url') &&
        htm === request.method &&
        htu === resource &&
        jti && !used.has(jti) &&
        (await calculateJwkThumbprint(proof.protectedHeader.jwk)) === claims.payload.cnf?.jkt;
    if (!right) throw new Error('invalid_dpop_proof');
    used.add(jti);
    if (sent !== nonce) throw new Error('use_dpop_nonce');
    return claims.payload;
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
    if (path === '/key') return send(200, {}, await exportPKCS8(signer.privateKey));
    const about = path.startsWith(METADATA) ? path.slice(METADATA.length) : path;
    if (LIFETIMES[about] === undefined) return send(404, {}, {});
    const resource = base + about;
    if (path !== about) {
        return send(200, {}, { resource, authorization_servers: [issuer], scopes_supported: SCOPES });
    }
    if (request.method !== 'POST') return send(405, { allow: 'POST' }, {});
    const challenge = (error, scopes) => {
        const scope = `scope="${scopes.join(' ')}", resource_metadata="${base}${METADATA}${about}"`;
        const scheme = about === BOUND ? 'DPoP algs="ES256 EdDSA",' : 'Bearer';
        return { 'www-authenticate': `${scheme} ${error ? `error="${error}", ` : ''}${scope}`, ...(error === 'use_dpop_nonce' && { 'dpop-nonce': nonce }) };
    };
    let claims;
    try {
        claims = await (about === BOUND ? prove : verify)(request, resource);
    } catch (why) {
        const error = ['invalid_dpop_proof', 'use_dpop_nonce'].find((known) => why.message === known) ?? 'invalid_token';
        events.push(`denied ${error}`);
        return send(401, challenge(error, ['mcp:basic']), { error, error_description: `${why}` });
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

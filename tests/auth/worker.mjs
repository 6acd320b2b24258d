// An MCP server on a Workers runtime, guarded by an authorization server in the same worker, as many public servers are. Its page is
// a form, which the user of the tests posts. Access tokens live for 60 s, the shortest time there is.
import { OAuthProvider, insufficientScope } from '@cloudflare/workers-oauth-provider';

const TOOLS = { whoami: ['mcp:basic'], write: ['mcp:basic', 'mcp:write'] };

// The store of the authorization server: what a key-value namespace does, in memory.
const values = new Map();
const kept = (key) => {
    const found = values.get(key);
    return found && (found.until === undefined || found.until > Date.now()) ? found : undefined;
};
const OAUTH_KV = {
    async get(key, options) {
        const text = kept(key)?.value ?? null;
        const type = typeof options === 'string' ? options : options?.type;
        return type === 'json' && text !== null ? JSON.parse(text) : text;
    },
    async put(key, value, { expirationTtl, expiration, metadata } = {}) {
        const until = expirationTtl ? Date.now() + expirationTtl * 1000 : expiration ? expiration * 1000 : undefined;
        values.set(key, { value, until, metadata });
    },
    async delete(key) {
        values.delete(key);
    },
    async list({ prefix = '' } = {}) {
        const names = [...values.keys()].filter((name) => name.startsWith(prefix) && kept(name));
        return { keys: names.map((name) => ({ name, metadata: values.get(name).metadata })), list_complete: true };
    },
};

// Answers a message of a client with these scopes: a response.
function answer({ id, method, params = {} }, auth) {
    const result = (result) => Response.json({ jsonrpc: '2.0', id, result });
    if (id === undefined) return new Response(null, { status: 202 });
    if (method === 'initialize') {
        const serverInfo = { name: 'worker', version: '1.0.0' };
        return result({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo });
    }
    if (method === 'tools/list') {
        return result({ tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: 'object' } })) });
    }
    if (method === 'tools/call' && TOOLS[params.name]) {
        const needed = TOOLS[params.name];
        if (!needed.every((scope) => auth.scope.includes(scope))) return insufficientScope(auth, needed);
        return result({ content: [{ type: 'text', text: auth.scope.toSorted().join(' ') }] });
    }
    return Response.json({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } });
}

const apiHandler = {
    async fetch(request, _env, context) {
        if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'POST' } });
        return answer(await request.json(), context.auth);
    },
};

const defaultHandler = {
    async fetch(request, env) {
        const { pathname, search } = new URL(request.url);
        if (pathname !== '/authorize') return new Response(null, { status: 404 });
        const oauth = env.OAUTH_PROVIDER;
        const wanted = await oauth.parseAuthRequest(new Request(request.url));
        if (request.method !== 'POST') {
            const form = `<form action="/authorize${search}" method="post"><input type="hidden" name="prompt" value="login"></form>`;
            return new Response(form, { headers: { 'content-type': 'text/html' } });
        }
        const userId = (await request.formData()).get('login');
        const granted = { request: wanted, userId, metadata: {}, scope: wanted.scope, props: { userId } };
        const { redirectTo } = await oauth.completeAuthorization(granted);
        return new Response(null, { status: 302, headers: { location: redirectTo } });
    },
};

let provider;

export default {
    async fetch(request, env, context) {
        const { origin } = new URL(request.url);
        provider ??= new OAuthProvider({
            accessTokenTTL: 60,
            apiHandler,
            apiRoute: '/mcp',
            authorizeEndpoint: '/authorize',
            clientRegistrationEndpoint: '/register',
            defaultHandler,
            requiredScopes: ['mcp:basic'],
            resourceMetadata: { resource: `${origin}/mcp`, authorization_servers: [origin] },
            scopesSupported: ['mcp:basic', 'mcp:write', 'offline_access'],
            tokenEndpoint: '/token',
        });
        return provider.fetch(request, { ...env, OAUTH_KV }, context);
    },
};

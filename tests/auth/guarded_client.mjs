// A client on the official TypeScript SDK that logs in at a server and calls a tool: `guarded_client.mjs URL`. Writes `PAGE URL`, reads the
// URL of the redirect from its standard input, and writes `SAID TEXT`.
import { createInterface } from 'node:readline';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const url = new URL(process.argv[2]);
const redirect = 'http://127.0.0.1:1/callback';
const kept = {};
const authProvider = {
    redirectUrl: redirect,
    clientMetadata: { client_name: 'typescript', redirect_uris: [redirect], token_endpoint_auth_method: 'none' },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => void (kept.client = client),
    tokens: () => kept.tokens,
    saveTokens: (tokens) => void (kept.tokens = tokens),
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
    redirectToAuthorization: (page) => console.log(`PAGE ${page.href}`),
};

async function connect() {
    const transport = new StreamableHTTPClientTransport(url, { authProvider });
    const client = new Client({ name: 'typescript', version: '1.0.0' });
    try {
        await client.connect(transport);
        return client;
    } catch (why) {
        if (!(why instanceof UnauthorizedError)) throw why;
    }
    const [line] = await Array.fromAsync(createInterface({ input: process.stdin }));
    await transport.finishAuth(new URL(line).searchParams.get('code'));
    return connect();
}

const client = await connect();
const { content } = await client.callTool({ name: 'whoami' });
console.log(`SAID ${content[0].text}`);
await client.close();

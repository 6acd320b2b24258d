// What the servers have in common over HTTP. Each tells its answers as lines `METHOD STATUS`, with ` after ID` where the client has asked
// for the rest of a stream, and the end of each stream that was asked for as `GET ended`.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer as createPlain } from 'node:http';
import { createServer as createSecure } from 'node:https';
import { join } from 'node:path';
import { Readable } from 'node:stream';

const [port, ...flags] = process.argv.slice(2);

// What the command line says.
export const options = {
    port,
    stateless: flags.includes('--stateless'),
    json: flags.includes('--json'),
    sse: flags.includes('--sse'),
    webSocket: flags.includes('--web-socket'),
};

// Tells the answer to a request.
export function tell(request, response) {
    const last = request.headers['last-event-id'];
    const write = response.writeHead;
    if (request.method === 'GET') response.on('close', () => console.log('GET ended'));
    response.writeHead = (status, ...more) => {
        console.log(request.method, status, ...(last === undefined ? [] : [`after ${last}`]));
        return write.call(response, status, ...more);
    };
}

// Answers with a function from a web request to a web response.
export async function answer(fetch, request, response) {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const { method, headers, url } = request;
    const body = method === 'POST' ? { body: Readable.toWeb(request), duplex: 'half' } : {};
    const asked = new Request(`http://127.0.0.1${url}`, { method, headers, signal: gone.signal, ...body });
    const answer = await fetch(asked);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.flushHeaders();
    const reader = answer.body?.getReader();
    // The signal of a request that nobody holds any more aborts nothing.
    response.on('close', () => reader?.cancel(asked.signal.reason).catch(() => {}));
    for (let part = await reader?.read(); part && !part.done; part = await reader.read()) response.write(part.value);
    response.end();
}

// Returns a function that serves sessions, each with a transport of its own, or none. `begin` connects a server to a new transport with
// these settings.
export function sessions(begin) {
    const sessions = new Map();
    const settings = {
        enableJsonResponse: options.json,
        sessionIdGenerator: options.stateless ? undefined : randomUUID,
        onsessionclosed: (id) => void sessions.delete(id),
    };
    return async (request, response) => {
        const id = request.headers['mcp-session-id'];
        let transport = sessions.get(id);
        if (id !== undefined && !transport) {
            const error = { code: -32001, message: 'Session not found' };
            response.writeHead(404).end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
            return;
        }
        if (!transport) {
            const own = { ...settings, onsessioninitialized: (id) => void sessions.set(id, transport) };
            transport = await begin(own);
            if (options.stateless) response.on('close', () => transport.close());
        }
        await transport.handleRequest(request, response);
    };
}

// A server with TLS, if there is a folder with a certificate.
function createServer(respond) {
    const folder = process.env.INTEROP_TLS;
    if (!folder) {
        return createPlain(respond);
    }
    const [cert, key] = ['cert.pem', 'key.pem'].map((name) => readFileSync(join(folder, name)));
    return createSecure({ cert, key }, respond);
}

// Serves a port of loopback until it is interrupted. Returns the server.
export function serve(respond) {
    const server = createServer((request, response) => {
        tell(request, response);
        respond(request, response).catch((why) => {
            console.error(why);
            response.destroy();
        });
    });
    server.listen(Number(options.port), '127.0.0.1');
    process.on('SIGINT', () => {
        server.close(() => process.exit(0));
        server.closeIdleConnections();
    });
    return server;
}

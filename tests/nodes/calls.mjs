// Clients that call all the time, and check each answer: `client1.mjs URL COUNT MODE`, until standard input ends. The last line of output is
// what became of the calls. `connect` hides what differs between the SDKs.
const TIMEOUT = 40_000;
const TOOLS = ['echo', 'slow', 'ask'];

const [url, count, mode] = process.argv.slice(2);
const tally = { begun: 0, answered: 0, failed: {}, slowest: 0, faults: [], alive: 0 };
let stopped = false;
process.stdin.on('end', () => (stopped = true)).resume();
// What an SDK throws where nothing waits for it is one of its failures.
process.on('unhandledRejection', (why) => failed('elsewhere', why));

const below = (limit) => Math.floor(Math.random() * limit);
const sleep = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

// The text of an error, with those of its numbers that are statuses.
function text(why) {
    const said = [why, why?.cause].filter(Boolean).map((error) => String(error.message ?? error)).join(': ');
    return said.replace(/\d+/g, (number) => (/^[45]\d\d$/.test(number) ? number : '')).replace(/\s+/g, ' ');
}

function failed(what, why) {
    const cause = `${what}: ${text(why)}`.slice(0, 200);
    tally.failed[cause] = (tally.failed[cause] ?? 0) + 1;
}

// Calls a tool. Returns whether it is answered.
async function call(session, tool, word) {
    tally.begun += 1;
    const text = `${word} ${tally.begun}`;
    const expected = tool === 'ask' ? `${text} ${word}` : text;
    const begun = Date.now();
    try {
        const result = await session.call(tool, { text, millis: below(3000) }, { timeout: TIMEOUT });
        const said = result.content?.[0]?.text;
        if (said === expected) tally.answered += 1;
        else tally.faults.push(`${tool} of ${expected} gave ${said}`);
        return said === expected;
    } catch (why) {
        failed(tool, why);
        return false;
    } finally {
        tally.slowest = Math.max(tally.slowest, (Date.now() - begun) / 1000);
    }
}

async function begin(connect, word) {
    try {
        return await connect(new URL(url), mode, () => ({ action: 'accept', content: { word } }));
    } catch (why) {
        failed('connect', why);
    }
}

// Is one client. After a failure it connects again.
async function client(connect, nth) {
    const word = `word-${process.pid}-${nth}`;
    let session;
    const once = async (tool) => {
        session ??= await begin(connect, word);
        const answered = session !== undefined && (await call(session, tool, word));
        if (!answered && session) {
            session.close().catch(() => {});
            session = undefined;
        }
        return answered;
    };
    while (!stopped) {
        await once(TOOLS[below(TOOLS.length)]);
        await sleep(below(2000));
    }
    // A session can have been lost since its last call.
    if ((await once('echo')) || (await once('echo'))) tally.alive += 1;
}

export async function run(connect) {
    await Promise.all(Array.from({ length: Number(count) }, (_, nth) => client(connect, nth)));
    console.log(JSON.stringify(tally));
    process.exit(0);
}

// What the callbacks of a client have heard, and what its user and its model answer.
import { strict as assert } from 'node:assert';

export const SOON = 10_000;

export const name = 'Ann';

export const heard = {
    asked: [],
    notes: 0,
    changes: 0,
    logged: [],
    updated: [],
    pages: [],
    completed: [],
    // Whether the user fills in forms, and opens pages.
    accept: true,
    opens: true,
};

// What the client can do.
export const capabilities = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };

export function elicit(params) {
    if (params.mode === 'url') {
        heard.asked.push('page');
        heard.pages.push(params);
        return { action: heard.opens ? 'accept' : 'decline' };
    }
    heard.asked.push('user');
    return heard.accept ? { action: 'accept', content: { name } } : { action: 'decline' };
}

// The model uses the offered tool, and then says what the tool has said.
export function sample(params) {
    heard.asked.push('model');
    const said = { role: 'assistant', model: 'none' };
    assert.equal([params.messages[0].content].flat()[0].text, 'What is six times seven?');
    const [last] = [params.messages.at(-1).content].flat();
    if (last.type === 'tool_result') {
        return { ...said, content: { type: 'text', text: `${last.toolUseId} gave ${last.content[0].text}` } };
    }
    if (!params.tools) return { ...said, content: { type: 'text', text: 'forty-two' } };
    const use = { type: 'tool_use', id: 'use-1', name: params.tools[0].name, input: { a: 6, b: 7 } };
    return { ...said, content: [use], stopReason: 'toolUse' };
}

export function roots() {
    heard.asked.push('roots');
    return { roots: [{ uri: 'file:///somewhere', name: 'the only one' }] };
}

export const logged = ({ params: { level, logger, data } }) => void heard.logged.push(`${level} ${logger} ${data}`);

export const updated = ({ params }) => void heard.updated.push(params.uri);

export const completed = ({ params }) => void heard.completed.push(params.elicitationId);

export const text = (result) => result.content.map((block) => block.text).join('\n');

// Waits until something is so.
export async function until(condition) {
    const end = Date.now() + SOON;
    while (!condition()) {
        assert.ok(Date.now() < end, 'it did not come');
        await new Promise((resolve) => setTimeout(resolve, 5));
    }
}

// Skills on the TypeScript SDK: `skills.mjs serve FOLDER` serves those in a folder, `skills.mjs read PROGRAM ARGUMENTS...` lists those of
// a server, reads all files of each, and prints what it found.
import { createHash } from 'node:crypto';
import { Client } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { McpServer } from '@modelcontextprotocol/server';
import { loadSkills } from '@modelcontextprotocol/server/ext/skills/node';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

async function read(mode, [command, ...args]) {
    const versionNegotiation = { mode: mode === 'modern' ? { pin: '2026-07-28' } : 'legacy' };
    const client = new Client({ name: 'skills-node', version: '1' }, { versionNegotiation });
    await client.connect(new StdioClientTransport({ command, args }));
    const skills = new SkillsClient(client);
    const { skills: entries, invalid } = await skills.list();
    const found = {};
    for (const entry of entries) {
        const { skill } = await skills.get(entry.uri);
        for (const { uri } of skill.resources) {
            const file = await skills.read(skill, uri);
            if (!file.verified) throw new Error(`${uri} is not verified`);
            found[uri] = sha256(file.bytes);
        }
    }
    const root = entries[0].uri.replace(/\/SKILL\.md$/, '');
    const { resources } = await skills.readDirectory(root);
    const directories = resources.filter(({ mimeType }) => mimeType === 'inode/directory').map(({ uri }) => uri);
    const unknown = await skills.get('skill://none/SKILL.md').catch(({ code }) => code);
    console.log(JSON.stringify({ invalid: invalid.length, found, directories, unknown }));
    await client.close();
}

const [word, ...words] = process.argv.slice(2);
if (word === 'serve') {
    const catalog = await loadSkills(words[0], { strict: true });
    serveStdio(() => {
        const server = new McpServer({ name: 'skills-node', version: '1' }, { capabilities: {} });
        catalog.attach(server);
        return server;
    });
} else {
    await read(word, words);
}

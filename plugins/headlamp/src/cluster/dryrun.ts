// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { CORE_SCHEMA, loadAll, Type, YAMLException, types } from 'js-yaml';

declare module 'js-yaml' {
  const types: Record<'bool' | 'int' | 'merge', Type>;
}

// A manifest, as far as it must be known to send it.
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name?: string; generateName?: string; namespace?: string };
}

export interface Answer {
  // Such as Deployment shop/search.
  object: string;
  result: 'fits' | 'warned' | 'refused' | 'failed';
  // What the API server said.
  messages: string[];
}

export interface ApiResource {
  name: string;
  kind: string;
  namespaced: boolean;
}

export interface Reply {
  // The header Warning of the answer.
  warning: string | null;
  // Whether a browser would hide the header, because the answer comes from another origin.
  hidden: boolean;
}

export interface Api {
  discover(path: string): Promise<ApiResource[]>;
  send(method: 'PATCH' | 'POST', path: string, query: Record<string, string>, body: string): Promise<Reply>;
}

export const mostObjects = 50;
export const mostCharacters = 1_000_000;

// kubectl reads YAML 1.1: 0644 is octal, yes and on are true, and << merges. As in js-yaml's own schema, a time is text.
const octal = /^[-+]?0[0-7_]+$/;
const truth = /^(y|Y|yes|Yes|YES|on|On|ON)$/;
const untruth = /^(n|N|no|No|NO|off|Off|OFF)$/;
const schema = CORE_SCHEMA.extend({
  implicit: [
    types.merge,
    new Type('tag:yaml.org,2002:int', {
      kind: 'scalar',
      resolve: (text: string | null) => types.int.resolve(text),
      construct: (text: string) => (octal.test(text) ? parseInt(text.replaceAll('_', ''), 8) : (types.int.construct(text) as number)),
    }),
    new Type('tag:yaml.org,2002:bool', {
      kind: 'scalar',
      resolve: (text: string | null) => types.bool.resolve(text) || truth.test(text ?? '') || untruth.test(text ?? ''),
      construct: (text: string) => truth.test(text) || (types.bool.construct(text) as boolean),
    }),
  ],
});

// readManifests reads what was pasted: documents of YAML, of which JSON is a part. What is wrong is thrown as an Error.
export function readManifests(text: string): Manifest[] {
  if (text.length > mostCharacters) {
    throw new Error(`That is more than ${mostCharacters} characters. Paste less.`);
  }
  let documents: unknown[];
  try {
    documents = loadAll(text, undefined, { schema });
  } catch (error) {
    throw new Error(error instanceof YAMLException ? `This is not YAML: ${error.message}` : String(error));
  }
  const manifests = documents.filter(document => document !== null && document !== undefined).flatMap(unlisted).map(asManifest);
  if (manifests.length === 0) {
    throw new Error('There is no manifest in it. Paste the YAML or JSON of one or more objects.');
  }
  if (manifests.length > mostObjects) {
    throw new Error(`These are ${manifests.length} objects. Paste ${mostObjects} at most.`);
  }
  return manifests;
}

function unlisted(document: unknown): unknown[] {
  const list = document as { kind?: unknown; items?: unknown };
  return list.kind === 'List' && Array.isArray(list.items) ? (list.items as unknown[]) : [document];
}

function asManifest(document: unknown, index: number): Manifest {
  const found = (typeof document === 'object' && document !== null ? document : {}) as Partial<Manifest>;
  if (typeof found.apiVersion !== 'string' || typeof found.kind !== 'string' || typeof found.metadata !== 'object' || !found.metadata) {
    throw new Error(`Object ${index + 1} is no manifest: it needs apiVersion, kind and metadata.`);
  }
  if (!found.metadata.name && !found.metadata.generateName) {
    throw new Error(`Object ${index + 1}, a ${found.kind}, has no metadata.name.`);
  }
  return found as Manifest;
}

// tryManifests asks the API server about each manifest by a dry run, one after the other. Nothing is stored.
export async function tryManifests(api: Api, manifests: Manifest[], namespace: string): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const manifest of manifests) {
    answers.push(await tryOne(api, manifest, namespace));
  }
  return answers;
}

async function tryOne(api: Api, manifest: Manifest, namespace: string): Promise<Answer> {
  const place = manifest.metadata.namespace ?? namespace;
  const name = manifest.metadata.name ?? `${manifest.metadata.generateName}…`;
  try {
    const root = manifest.apiVersion.includes('/') ? `/apis/${manifest.apiVersion}` : `/api/${manifest.apiVersion}`;
    const resource = (await api.discover(root)).find(served => served.kind === manifest.kind && !served.name.includes('/'));
    if (!resource) {
      return { object: `${manifest.kind} ${name}`, result: 'failed', messages: [`The cluster serves no ${manifest.kind} of ${manifest.apiVersion}.`] };
    }
    const object = `${manifest.kind} ${resource.namespaced ? `${place}/` : ''}${name}`;
    const base = `${root}/${resource.namespaced ? `namespaces/${encodeURIComponent(place)}/` : ''}${resource.name}`;
    const body = JSON.stringify(resource.namespaced ? { ...manifest, metadata: { ...manifest.metadata, namespace: place } } : manifest);
    return { object, ...(await sent(api, manifest, base, body)) };
  } catch (error) {
    return { object: `${manifest.kind} ${name}`, result: 'failed', messages: [messageOf(error)] };
  }
}

// Server-side apply takes an object that exists, and one that doesn't; only what has no name yet is created.
async function sent(api: Api, manifest: Manifest, base: string, body: string): Promise<Omit<Answer, 'object'>> {
  const query = { dryRun: 'All', fieldManager: 'shared-quota-headlamp', fieldValidation: 'Warn' };
  try {
    const { name } = manifest.metadata;
    const reply = name
      ? await api.send('PATCH', `${base}/${encodeURIComponent(name)}`, { ...query, force: 'true' }, body)
      : await api.send('POST', base, query, body);
    const warnings = readWarnings(reply.warning);
    const blind = reply.hidden && warnings.length === 0 ? ['The browser hides warnings here, so there may be some.'] : [];
    return { result: warnings.length + blind.length > 0 ? 'warned' : 'fits', messages: [...warnings, ...blind] };
  } catch (error) {
    const refused = statusOf(error) === 403 || statusOf(error) === 422;
    return { result: refused ? 'refused' : 'failed', messages: [messageOf(error)] };
  }
}

function statusOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined;
}

// Headlamp puts the words of the HTTP status before those of the API server.
function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/^[A-Za-z ]* - /, '');
}

// readWarnings reads the header Warning: each is 299, who warns, and the text in quotes.
export function readWarnings(header: string | null): string[] {
  return [...(header ?? '').matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map(match => (match[1] ?? '').replace(/\\(.)/g, '$1'));
}

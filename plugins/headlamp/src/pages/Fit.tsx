// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { Box, Button, TextField, Typography } from '@mui/material';
import { type FormEvent, useState } from 'react';
import { type Answer, readManifests, tryManifests } from '../cluster/dryrun';
import { dryRunThrough } from '../cluster/headlamp-dryrun';
import { Page, useClusterName } from '../parts/Page';
import { Note } from '../parts/States';
import { useNamespaces } from './Views';

const severities = { fits: 'success', warned: 'warning', refused: 'error', failed: 'error' } as const;
const words = {
  fits: 'The API server would accept it, without a warning.',
  warned: 'The API server would accept it, and warns:',
  refused: 'It would be refused:',
  failed: 'It could not be tried:',
};

// Answers shows what the API server said about each object.
export function Answers({ answers }: { answers: Answer[] }) {
  return (
    <Box aria-label="Answers" role="region">
      {answers.map((answer, index) => (
        <Note key={index} severity={severities[answer.result]}>
          <Typography component="span" variant="inherit" sx={{ fontWeight: 600 }}>
            {answer.object}:
          </Typography>{' '}
          {words[answer.result]}
          {answer.messages.map((message, at) => (
            <Typography key={at} variant="body2" component="div">
              {message}
            </Typography>
          ))}
        </Note>
      ))}
    </Box>
  );
}

// Fit tries manifests by a dry run of the API server.
export function Fit() {
  const cluster = useClusterName();
  const [known] = useNamespaces(cluster);
  const [text, setText] = useState('');
  const [namespace, setNamespace] = useState(known[0] ?? 'default');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const [answers, setAnswers] = useState<Answer[]>([]);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setProblem('');
    setAnswers([]);
    setBusy(true);
    try {
      setAnswers(await tryManifests(dryRunThrough(cluster), readManifests(text), namespace));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <Page title="Does it fit?">
      <Typography>
        Paste manifests. The API server tries each by itself, by a dry run with your rights, and nothing is stored. So two that fit alone
        may not fit together, and more may be used in a moment.
      </Typography>
      <Box component="form" onSubmit={event => void submit(event)} sx={{ display: 'grid', gap: 2, my: 2 }}>
        <TextField
          label="Namespace, for objects that name none"
          size="small"
          value={namespace}
          onChange={event => setNamespace(event.target.value.trim())}
          sx={{ maxWidth: 400 }}
        />
        <TextField
          label="Manifests, as YAML or JSON"
          variant="outlined"
          multiline
          minRows={8}
          maxRows={24}
          value={text}
          onChange={event => setText(event.target.value)}
          inputProps={{ spellCheck: false, style: { fontFamily: 'monospace' } }}
        />
        <Box>
          <Button
            type="submit"
            variant="outlined"
            disabled={busy || !text.trim() || !namespace}
            sx={{ color: 'text.primary', borderColor: 'text.secondary' }}
          >
            {busy ? 'Trying' : 'Try'}
          </Button>
        </Box>
      </Box>
      {problem && <Note severity="error">{problem}</Note>}
      <Answers answers={answers} />
    </Page>
  );
}

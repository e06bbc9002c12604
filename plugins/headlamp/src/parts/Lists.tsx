// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { Box, Table, TableBody, TableCell, TableContainer, TableHead, TableRow, Typography } from '@mui/material';
import type { ReactNode } from 'react';
import { amounts, type Refusal, type Waiting } from '../model/refusals';
import type { Sentence } from '../model/words';
import { Note, Time } from './States';

interface GridProps {
  // What the table shows, for those who don't see it.
  label: string;
  columns: string[];
  rows: { key: string; cells: ReactNode[] }[];
}

// Grid is a table that scrolls in itself if the window is narrow, by the keyboard, too.
export function Grid({ label, columns, rows }: GridProps) {
  return (
    <TableContainer tabIndex={0} role="region" aria-label={label}>
      <Table size="small">
        <TableHead>
          <TableRow>
            {columns.map(column => (
              <TableCell key={column} sx={{ fontWeight: 600, verticalAlign: 'bottom' }}>
                {column}
              </TableCell>
            ))}
          </TableRow>
        </TableHead>
        <TableBody>
          {rows.map(row => (
            <TableRow key={row.key}>
              {row.cells.map((cell, index) => (
                <TableCell key={columns[index]} sx={{ verticalAlign: 'top' }}>
                  {cell}
                </TableCell>
              ))}
            </TableRow>
          ))}
        </TableBody>
      </Table>
    </TableContainer>
  );
}

const severities = { good: 'success', attention: 'warning', bad: 'error', unknown: 'info' } as const;

// Conditions says conditions in words.
export function Conditions({ said }: { said: Sentence[] }) {
  return (
    <>
      {said.map(sentence => (
        <Note key={sentence.type} severity={severities[sentence.verdict]}>
          <Typography component="span" variant="inherit" sx={{ fontWeight: 600 }}>
            {sentence.type}:
          </Typography>{' '}
          {sentence.says} {sentence.next}
          <Typography variant="body2" component="div">
            {sentence.reason}
            {sentence.message && `: ${sentence.message}`}
            {sentence.outdated && ' (This is about an older spec.)'}
          </Typography>
        </Note>
      ))}
    </>
  );
}

// Refusals lists what didn't fit, and what became of it.
export function Refusals({ refusals }: { refusals: Refusal[] }) {
  return (
    <Box component="ul" sx={{ listStyle: 'none', m: 0, p: 0 }}>
      {refusals.map(refusal => (
        <Box component="li" key={refusal.key} sx={{ py: 1, borderBottom: 1, borderColor: 'divider' }}>
          <Typography sx={{ fontWeight: 600 }}>
            {refusal.about}
            {refusal.namespace && ` in ${refusal.namespace}`}, <Time at={refusal.at} />
            {refusal.count > 1 && `, ${refusal.count} times`}
          </Typography>
          <Typography>{refusal.why}</Typography>
          <Typography variant="body2" sx={{ overflowWrap: 'anywhere' }}>
            {refusal.message}
          </Typography>
        </Box>
      ))}
    </Box>
  );
}

// WaitingTable lists who waits for room. A page may have several, so each says of what it is.
export function WaitingTable({ waiting, of }: { waiting: Waiting[]; of: string }) {
  return (
    <Grid
      label={`Workloads that wait for room: ${of}`}
      columns={['Workload', 'Namespace', 'Quota', 'Waits since', 'Short of']}
      rows={waiting.map(owner => ({
        key: `${owner.namespace}/${owner.quota}/${owner.kind}/${owner.name}`,
        cells: [`${owner.kind}/${owner.name}`, owner.namespace, owner.quota, <Time key="since" at={owner.since} />, amounts(owner.short)],
      }))}
    />
  );
}

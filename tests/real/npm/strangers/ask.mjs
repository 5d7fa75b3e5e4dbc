// Asks in one way, the argument, and prints what was answered.
import * as clack from '@clack/prompts';
import { checkbox, select } from '@inquirer/prompts';
import enquirer from 'enquirer';
import prompts from 'prompts';

const named = (names) => names.map((name) => ({ name, value: name }));
const ways = {
  'clack-select': () =>
    clack.select({
      message: 'Which template do you want?',
      options: [{ value: 'basic', label: 'Basic', hint: 'usual' }, { value: 'blog', label: 'Blog' }, { value: 'empty', label: 'Empty' }],
    }),
  'clack-confirm': () => clack.confirm({ message: 'Install the dependencies?' }),
  'clack-multi': () =>
    clack.multiselect({ message: 'Pick your tools', options: [{ value: 'linter', label: 'Linter' }, { value: 'tests', label: 'Tests' }] }),
  'inquirer-select': () => select({ message: 'Allow the tool to run?', choices: named(['Yes', "Yes, and don't ask again", 'No']) }),
  'inquirer-checkbox': () => checkbox({ message: 'Select the features', choices: named(['Auth', 'Storage', 'Mail']) }),
  'prompts-select': async () =>
    (await prompts({ type: 'select', name: 'value', message: 'Pick a colour', choices: [{ title: 'Red', value: 'red' }, { title: 'Blue', value: 'blue' }] })).value,
  'prompts-toggle': async () =>
    (await prompts({ type: 'toggle', name: 'value', message: 'Can you confirm?', initial: true, active: 'yes', inactive: 'no' })).value,
  'enquirer-select': () => new enquirer.Select({ name: 'value', message: 'Pick a flavor', choices: ['apple', 'grape'] }).run(),
};
console.log('answered ' + JSON.stringify(await ways[process.argv[2]]()));
process.stdin.resume();

// SPDX-License-Identifier: Apache-2.0

package detectors

// absent are detectors that a reader will look for, and why their lines are empty. The table
// is made without a network: what fetches a model when it is first used cannot be measured.
var absent = []struct{ name, needs string }{
	{"jailguard 0.1.2 (PyPI)", "downloads a sentence encoder of 90 MB at first use"},
	{"bastion-prompt-protection 1.3.5 (PyPI)", "downloads its model from a hub"},
	{"barrikade 0.2.0 (PyPI)", "downloads its model from a storage bucket"},
	{"prismguard 0.1.10 (PyPI)", "downloads its ONNX model; the package holds the tokenizer alone"},
	{"toolwall-guard 0.4.0, the judge (PyPI)", "downloads its model of 184 M parameters from a hub; its rules are measured"},
	{"llm-guard 0.3.16, scanner PromptInjection (PyPI)", "downloads deberta-v3-base-prompt-injection-v2 from a hub; its other scanners look for something else"},
	{"pytector 0.4.0 (PyPI)", "downloads its model from a hub"},
	{"cyberjev 0.1.0 (PyPI)", "downloads its model from a hub"},
	{"rebuff 0.1.1, model and vector layers (PyPI)", "an API key of OpenAI and of Pinecone"},
	{"aicordon 1.4.0, Intent (PyPI)", "an API key; its local rule, Picket, is measured"},
	{"metatronnanoguard 0.1.0 (PyPI)", "PyTorch"},
	{"Llama Prompt Guard 2", "weights from a hub, behind a licence that has to be accepted"},
	{"Azure Prompt Shields", "a subscription: a managed service"},
	{"Amazon Bedrock Guardrails", "an account: a managed service"},
	{"Google Model Armor", "an account: a managed service"},
	{"Lakera Guard", "an API key: a managed service"},
}

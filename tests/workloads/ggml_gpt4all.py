"""ggml_gpt4all.py MODEL STEPS - reads a prompt and writes on, by gpt4all, and says on stderr what that was."""
import json
import os
import sys

from gpt4all import GPT4All

PROMPT = "once"


def main():
    path, steps = sys.argv[1], int(sys.argv[2])
    os.symlink(path, "gpt4all.gguf")            # it takes no other names
    model = GPT4All("gpt4all.gguf", model_path=os.getcwd(), allow_download=False, n_threads=1, device="cpu", n_ctx=256)
    read, written = [], []
    model.model._prompt_callback = lambda token: read.append(token) or True
    model.model.prompt_model(PROMPT, "%1", lambda token, text: written.append(token) or True, n_predict=steps, temp=0.0, top_k=1)
    model.close()
    os.unlink("gpt4all.gguf")
    print(written)
    print(json.dumps({"read": len(read), "written": len(written)}), file=sys.stderr)


main()

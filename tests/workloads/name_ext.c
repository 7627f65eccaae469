// cc: -shared -fPIC
/*
 * name_ext.c - a Python extension that allocates a tensor.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static void *volatile tensor;

__attribute__((noinline)) static void tensor_make(Py_ssize_t size)
{
	tensor = malloc(size);                  /* frame: tensor_make */
	memset((void *)tensor, 1, size);
}

static PyObject *make(PyObject *self, PyObject *args)
{
	Py_ssize_t size;

	if (!PyArg_ParseTuple(args, "n", &size))
		return NULL;
	tensor_make(size);                      /* frame: make */
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "make", make, METH_VARARGS, "allocate a tensor" },
	{ 0 },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "name_ext", NULL, -1, methods };

PyMODINIT_FUNC PyInit_name_ext(void)
{
	return PyModule_Create(&module);
}

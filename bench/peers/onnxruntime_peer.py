# onnxruntime on the CPU: a model of one node, its inputs and outputs bound to the same arrays.
# SPDX-License-Identifier: Apache-2.0
"""The peer "onnxruntime"."""
import numpy as np

from bench.core import Absent, Subject, peer

# operation -> (operator, its inputs, its output, attributes from the scalars, version of the operator set)
NODES = {
    "softmax": ("Softmax", ["x"], "y", lambda s: {"axis": -1}, 17),
    "log_softmax": ("LogSoftmax", ["x"], "y", lambda s: {"axis": -1}, 17),
    "layer_norm": ("LayerNormalization", ["x", "gamma", "beta"], "y", lambda s: {"axis": -1, "epsilon": s.get("eps", 1e-5)}, 17),
    "rms_norm": ("RMSNormalization", ["x", "w"], "y", lambda s: {"axis": -1, "epsilon": s.get("eps", 1e-6)}, 23),
    "sum": ("ReduceSum", ["x", "axes:1"], "y", lambda s: {"keepdims": 0}, 17),
    "column_sums": ("ReduceSum", ["x", "axes:0"], "s", lambda s: {"keepdims": 0}, 17),
    "argmax": ("ArgMax", ["x"], "i", lambda s: {"axis": -1, "keepdims": 0}, 17),
    "matmul": ("MatMul", ["a", "b"], "c", lambda s: {}, 17),
}


def model_of(work, outputs):
    """The bytes of a model of one node for the shapes of the work, with outputs as these arrays are."""
    from onnx import TensorProto, checker, helper

    operator, inputs, output, attributes, opset = NODES[work.operation]
    arrays = {**work.inputs[0], **outputs}

    def info(name):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(arrays[name].dtype), arrays[name].shape)

    constants = [
        helper.make_tensor(name, TensorProto.INT64, [1], [int(name.split(":")[1])]) for name in inputs if name.startswith("axes:")
    ]
    node = helper.make_node(operator, inputs, [output], **attributes(work.scalars))
    given = [info(name) for name in inputs if not name.startswith("axes:")]
    graph = helper.make_graph([node], work.operation, given, [info(output)], initializer=constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    checker.check_model(model)
    return model.SerializeToString()


@peer("onnxruntime", requires=["onnx", "onnxruntime"])
def onnxruntime_(work):
    try:
        import onnx
        import onnxruntime as ort
    except ImportError as problem:
        raise Absent(f"{problem.name} is not installed") from None
    if work.operation not in NODES:
        raise Absent(f"no ONNX model is made for {work.operation} here")
    results, fetch = work.outputs, None
    if work.operation == "argmax":  # its indices are of 64 bits
        results = [{"i": np.empty(outputs["i"].shape, np.int64)} for outputs in work.outputs]

        def fetch(i):
            return {"i": results[i]["i"].astype(work.outputs[i]["i"].dtype)}

    options = ort.SessionOptions()
    options.intra_op_num_threads = work.threads
    options.log_severity_level = 4  # errors come back as exceptions
    try:
        session = ort.InferenceSession(model_of(work, results[0]), options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # its exceptions have no common class of their own
        raise Absent(f"onnxruntime {ort.__version__} refuses the model: {str(problem).splitlines()[0]}") from None
    bindings = []
    for inputs, outputs in zip(work.inputs, results):
        binding = session.io_binding()
        for name in (node.name for node in session.get_inputs()):
            array = inputs[name]
            binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        for name, array in outputs.items():
            binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)
        bindings.append(binding)
    return Subject(
        run=lambda i: session.run_with_iobinding(bindings[i]),
        fetch=fetch,
        versions={"onnxruntime": ort.__version__, "onnx": onnx.__version__},
        binaries=[ort.capi.onnxruntime_pybind11_state.__file__],
    )

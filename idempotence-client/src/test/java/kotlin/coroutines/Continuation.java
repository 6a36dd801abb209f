package kotlin.coroutines;

/**
 * A stand-in for Kotlin's type of this name: the compiler gives every {@code suspend} function such a parameter at its end.
 *
 * @param <T> what the function returns
 */
@SuppressWarnings("unused")
public interface Continuation<T> {}

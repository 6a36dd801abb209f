package io.idempotence.it.fault;

import java.io.IOException;
import java.io.OutputStream;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.time.Duration;
import java.util.Arrays;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import net.bytebuddy.jar.asm.ClassReader;
import net.bytebuddy.jar.asm.ClassVisitor;
import net.bytebuddy.jar.asm.ClassWriter;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;

/**
 * A Java agent that shifts the clock of a JVM. Any code that reads the time of day gets the shifted time, be it the JDK itself ({@code
 * Instant.now()}, {@code new Date()}), a driver or this project. {@code System.nanoTime()} is not affected.
 */
final class ShiftedClock implements ClassFileTransformer {
    private static final String MILLIS = "currentTimeMillis";
    /** What {@code java.time} asks for, in nanoseconds. */
    private static final String NANOS = "getNanoTimeAdjustment";

    private final Duration shift;

    private ShiftedClock(Duration shift) {
        this.shift = shift;
    }

    /** The option of a JVM whose clock is wrong by {@code shift}. */
    static String option(Path directory, Duration shift) throws IOException {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().putValue("Premain-Class", ShiftedClock.class.getName());
        manifest.getMainAttributes().putValue("Can-Retransform-Classes", "true");
        Path jar = Files.createTempFile(directory, "shifted-clock", ".jar");
        try (OutputStream out = Files.newOutputStream(jar)) {
            new JarOutputStream(out, manifest).close();
        }
        return "-javaagent:" + jar + "=" + shift;
    }

    /** Called by the JVM before {@code main}. */
    public static void premain(String shift, Instrumentation jvm) throws UnmodifiableClassException {
        jvm.addTransformer(new ShiftedClock(Duration.parse(shift)), true);
        jvm.retransformClasses(Arrays.stream(jvm.getAllLoadedClasses())
                .filter(type -> type.getName().matches("java\\.(time|util)\\..*") && jvm.isModifiableClass(type))
                .toArray(Class<?>[]::new));
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> type, ProtectionDomain domain, byte[] classFile) {
        String text = new String(classFile, StandardCharsets.ISO_8859_1);
        if (!text.contains(MILLIS) && !text.contains(NANOS)) {
            return null;
        }
        ClassReader reader = new ClassReader(classFile);
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        reader.accept(
                new ClassVisitor(Opcodes.ASM9, writer) {
                    @Override
                    public MethodVisitor visitMethod(
                            int access, String method, String descriptor, String signature, String[] exceptions) {
                        return shifted(super.visitMethod(access, method, descriptor, signature, exceptions));
                    }
                },
                0);
        return writer.toByteArray();
    }

    private MethodVisitor shifted(MethodVisitor method) {
        return new MethodVisitor(Opcodes.ASM9, method) {
            @Override
            public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
                super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
                if (owner.equals("java/lang/System") && name.equals(MILLIS)) {
                    add(shift.toMillis());
                } else if (owner.equals("jdk/internal/misc/VM") && name.equals(NANOS)) {
                    add(shift.toNanos());
                }
            }

            private void add(long amount) {
                visitLdcInsn(amount);
                visitInsn(Opcodes.LADD);
            }
        };
    }
}

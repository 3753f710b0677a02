// SPDX-License-Identifier: Apache-2.0
// Compiles a program with Roslyn, as an SDK does, with its portable PDB within it, or in a file of its own:
//   compile SOURCE ASSEMBLY PDB|- Debug|Release SYMBOL[,SYMBOL...] DIRECTORY...
// The assembly says that the file was built in a directory which is not there.
// It may refer to the assemblies of the directories. Roslyn's types are reached by reflection, because the compiler of this
// program cannot read them.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Text;

static class Compile
{
    static Type Find(string name)
    {
        foreach (var assembly in new[] { "Microsoft.CodeAnalysis", "Microsoft.CodeAnalysis.CSharp" })
        {
            var type = Assembly.Load(assembly).GetType("Microsoft.CodeAnalysis." + name);
            if (type != null)
                return type;
        }
        throw new TypeLoadException(name);
    }

    static object DefaultOf(ParameterInfo p)
    {
        return p.DefaultValue == null && p.ParameterType.IsValueType ? Activator.CreateInstance(p.ParameterType) : p.DefaultValue;
    }

    // A method or constructor with parameters of these names, in any order: all others are optional.
    static object Call(IEnumerable<MethodBase> all, object self, Dictionary<string, object> given)
    {
        foreach (var method in all)
        {
            var parameters = method.GetParameters();
            if (!given.All(g => parameters.Any(p => p.Name == g.Key && p.ParameterType.IsInstanceOfType(g.Value))) ||
                !parameters.All(p => given.ContainsKey(p.Name) || p.IsOptional))
                continue;
            var values = parameters.Select(p => given.ContainsKey(p.Name) ? given[p.Name] : DefaultOf(p)).ToArray();
            var constructor = method as ConstructorInfo;
            return constructor != null ? constructor.Invoke(values) : method.Invoke(self, values);
        }
        throw new MissingMethodException(string.Join(", ", given.Keys));
    }

    static object Make(string type, Dictionary<string, object> given)
    {
        return Call(Find(type).GetConstructors(), null, given);
    }

    static object Static(string type, string name, Dictionary<string, object> given)
    {
        return Call(Find(type).GetMethods(BindingFlags.Public | BindingFlags.Static).Where(m => m.Name == name), null, given);
    }

    static Array ListOf(string type, params object[] items)
    {
        var list = Array.CreateInstance(Find(type), items.Length);
        items.CopyTo(list, 0);
        return list;
    }

    static object[] References(IEnumerable<string> directories)
    {
        return directories.SelectMany(d => Directory.GetFiles(d, "*.dll")).Where(IsManaged).Select(
            f => Static("MetadataReference", "CreateFromFile", new Dictionary<string, object> { { "path", f } })).ToArray();
    }

    static bool IsManaged(string file)
    {
        try
        {
            AssemblyName.GetAssemblyName(file);
            return true;
        }
        catch (BadImageFormatException)
        {
            return false;
        }
    }

    static int Main(string[] args)
    {
        var text = Static("Text.SourceText", "From", new Dictionary<string, object> {
            { "text", File.ReadAllText(args[0]) }, { "encoding", Encoding.UTF8 } });
        var symbols = Make("CSharp.CSharpParseOptions", new Dictionary<string, object> {
            { "preprocessorSymbols", args[4].Split(',') } });
        var tree = Static("CSharp.CSharpSyntaxTree", "ParseText", new Dictionary<string, object> {
            { "text", text }, { "options", symbols }, { "path", args[0] } });
        var options = Make("CSharp.CSharpCompilationOptions", new Dictionary<string, object> {
            { "outputKind", Enum.Parse(Find("OutputKind"), "ConsoleApplication") },
            { "optimizationLevel", Enum.Parse(Find("OptimizationLevel"), args[3]) } });
        object compilation = Static("CSharp.CSharpCompilation", "Create", new Dictionary<string, object> {
            { "assemblyName", Path.GetFileNameWithoutExtension(args[1]) }, { "syntaxTrees", ListOf("SyntaxTree", tree) },
            { "references", ListOf("MetadataReference", References(args.Skip(5))) }, { "options", options } });
        var embedded = args[2] == "-";
        var format = Enum.Parse(Find("Emit.DebugInformationFormat"), embedded ? "Embedded" : "PortablePdb");
        var emit = Make("Emit.EmitOptions", new Dictionary<string, object> {
            { "debugInformationFormat", format },
            { "pdbFilePath", "/build/nowhere/" + Path.GetFileNameWithoutExtension(args[1]) + ".pdb" } });
        using (var file = File.Create(args[1]))
        using (var pdb = embedded ? null : File.Create(args[2]))
        {
            var given = new Dictionary<string, object> { { "peStream", file }, { "options", emit } };
            if (!embedded)
                given.Add("pdbStream", pdb);
            dynamic result = Call(compilation.GetType().GetMethods().Where(m => m.Name == "Emit"), compilation, given);
            if (!result.Success)
                foreach (var diagnostic in result.Diagnostics)
                    Console.Error.WriteLine(diagnostic.ToString());
            return result.Success ? 0 : 1;
        }
    }
}
